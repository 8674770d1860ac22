"""`pykafkalog quotas` against a real broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import BrokerTool
from tests.support.either_broker import ON_APACHE
from tests.support.ports import free_port


@pytest.fixture
def quotas(bootstrap: str) -> BrokerTool:
    return BrokerTool("quotas", bootstrap)


def told(quotas: BrokerTool, *words: str) -> list[tuple[dict[str, Any], dict[str, float]]]:
    return [(each["entity"], each["quotas"]) for each in quotas.parsed(*words)]


def test_quotas_are_set_listed_and_removed(quotas: BrokerTool, topic: str) -> None:
    user, client = f"user-{topic}", f"client-{topic}"
    pair = {"user": user, "client-id": client}
    quotas("--user", user, "--add", "request_percentage=200", "--dry-run")
    assert told(quotas, "--user", user) == []
    set_ = told(quotas, "--user", user, "--add", "request_percentage=200")
    assert set_ == [({"user": user}, {"request_percentage": 200.0})]
    words = ("--user", user, "--client", client)
    values = {"consumer_byte_rate": 2048.0, "producer_byte_rate": 1e9}
    both = told(quotas, *words, "--add", "producer_byte_rate=1e9,consumer_byte_rate=2048")
    assert both == [(pair, values)]
    listed = told(quotas, "--user", user)
    assert sorted(listed, key=lambda each: len(each[0])) == [*set_, *both]
    assert told(quotas, "--client", client) == both
    every = told(quotas)
    assert all(each in every for each in (*set_, *both))
    left = told(quotas, *words, "--delete", "producer_byte_rate")
    assert left == [(pair, {"consumer_byte_rate": 2048.0})]
    assert told(quotas, *words, "--delete", "consumer_byte_rate") == []
    assert told(quotas, "--user", user, "--delete", "request_percentage") == []


def test_defaults_and_addresses(quotas: BrokerTool) -> None:
    default = told(quotas, "--ip-defaults", "--add", "connection_creation_rate=1000")
    assert default == [({"ip": None}, {"connection_creation_rate": 1000.0})]
    shown = quotas("--ip-defaults").splitlines()
    assert shown[1].split() == [
        *("-", "-", "<default>", "connection_creation_rate", "1000", "connections/s"),
    ]
    assert told(quotas, "--ip-defaults", "--delete", "connection_creation_rate") == []
    for words, said in (
        (("--ip", "192.0.2.7", "--add", "producer_byte_rate=1"), "producer_byte_rate"),
        (("--client", "x", "--add", "producer_byte_rate=-1"), "greater than 0"),
        (("--client", "x", "--add", "nonsense=1"), "nonsense"),
        (("--client", "x", "--delete", "producer_byte_ratex"), "no quota producer_byte_ratex"),
    ):
        assert said in quotas.refusal(*words)


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[BrokerTool]:
    """The command on a broker that serves metrics."""
    settings = {"metrics.http.listener": f"127.0.0.1:{free_port()}"}
    with BrokerProcess(tmp_path, settings) as broker:
        yield BrokerTool("quotas", broker.bootstrap)


@pytest.mark.skipif(ON_APACHE, reason="its brokers have no metrics.http.listener")
def test_clients_that_are_throttled_now_are_listed(measured: BrokerTool) -> None:
    assert measured("--throttled") == "Nobody is throttled.\n"
    told(measured, "--client-defaults", "--add", "producer_byte_rate=1000")
    for client, size in (("large", 30_000), ("small", 10)):
        producer = Producer({"bootstrap.servers": measured.bootstrap, "client.id": client})
        producer.produce("t", b"x" * size)
        assert producer.flush(20) == 0
    throttled = measured.parsed("--throttled")
    assert [(each["broker"], each["quota"], each["client_id"]) for each in throttled] == [
        ("1", "producer_byte_rate", "large")
    ]
    assert 10_000 < throttled[0]["throttled_ms"] <= 20_100
    assert throttled[0]["bound"] == 1000
    assert 2_000 < throttled[0]["rate"] < 3_100
    everyone = measured.parsed("--throttled", "--all")
    assert {each["client_id"] for each in everyone} == {"large", "small"}


def test_a_broker_without_metrics(quotas: BrokerTool) -> None:
    assert "metrics.http.listener is not set" in quotas.refusal("--throttled")
