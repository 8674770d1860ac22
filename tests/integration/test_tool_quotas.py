"""`pykafkalog quotas` against a real broker."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import Done, in_process
from tests.support.ports import free_port

APACHE = os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache"


def run(bootstrap: str, *words: str) -> Done:
    return in_process("quotas", "-b", bootstrap, *words)


def told(bootstrap: str, *words: str) -> list[tuple[dict[str, Any], dict[str, float]]]:
    done = run(bootstrap, *words, "--json")
    assert done.returncode == 0, done.stderr
    return [(each["entity"], each["quotas"]) for each in json.loads(done.stdout)]


def test_quotas_are_set_listed_and_removed(bootstrap: str, topic: str) -> None:
    user, client = f"user-{topic}", f"client-{topic}"
    pair = {"user": user, "client-id": client}
    dry = run(bootstrap, "--user", user, "--add", "request_percentage=200", "--dry-run")
    assert dry.returncode == 0
    assert told(bootstrap, "--user", user) == []
    set_ = told(bootstrap, "--user", user, "--add", "request_percentage=200")
    assert set_ == [({"user": user}, {"request_percentage": 200.0})]
    words = ("--user", user, "--client", client)
    values = {"consumer_byte_rate": 2048.0, "producer_byte_rate": 1e9}
    both = told(bootstrap, *words, "--add", "producer_byte_rate=1e9,consumer_byte_rate=2048")
    assert both == [(pair, values)]
    listed = told(bootstrap, "--user", user)
    assert sorted(listed, key=lambda each: len(each[0])) == [*set_, *both]
    assert told(bootstrap, "--client", client) == both
    every = told(bootstrap)
    assert all(each in every for each in (*set_, *both))
    left = told(bootstrap, *words, "--delete", "producer_byte_rate")
    assert left == [(pair, {"consumer_byte_rate": 2048.0})]
    assert told(bootstrap, *words, "--delete", "consumer_byte_rate") == []
    assert told(bootstrap, "--user", user, "--delete", "request_percentage") == []


def test_defaults_and_addresses(bootstrap: str) -> None:
    default = told(bootstrap, "--ip-defaults", "--add", "connection_creation_rate=1000")
    assert default == [({"ip": None}, {"connection_creation_rate": 1000.0})]
    shown = run(bootstrap, "--ip-defaults").stdout.splitlines()
    assert shown[1].split() == [
        *("-", "-", "<default>", "connection_creation_rate", "1000", "connections/s"),
    ]
    assert told(bootstrap, "--ip-defaults", "--delete", "connection_creation_rate") == []
    for words, said in (
        (("--ip", "192.0.2.7", "--add", "producer_byte_rate=1"), "producer_byte_rate"),
        (("--client", "x", "--add", "producer_byte_rate=-1"), "greater than 0"),
        (("--client", "x", "--add", "nonsense=1"), "nonsense"),
    ):
        refused = run(bootstrap, *words)
        assert refused.returncode == 1
        assert said in refused.stderr


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[BrokerProcess]:
    port = free_port()
    with BrokerProcess(tmp_path, {"metrics.http.listener": f"127.0.0.1:{port}"}) as broker:
        yield broker


@pytest.mark.skipif(APACHE, reason="its brokers have no metrics.http.listener")
def test_who_is_throttled_now(measured: BrokerProcess) -> None:
    where = measured.bootstrap
    assert run(where, "--throttled").stdout == "Nobody is throttled.\n"
    told(where, "--client-defaults", "--add", "producer_byte_rate=1000")
    for client, size in (("large", 30_000), ("small", 10)):
        producer = Producer({"bootstrap.servers": where, "client.id": client})
        producer.produce("t", b"x" * size)
        assert producer.flush(20) == 0
    throttled = json.loads(run(where, "--throttled", "--json").stdout)
    assert [(each["broker"], each["quota"], each["client_id"]) for each in throttled] == [
        ("1", "producer_byte_rate", "large")
    ]
    assert 10_000 < throttled[0]["throttled_ms"] <= 20_100
    assert throttled[0]["bound"] == 1000
    assert 2_000 < throttled[0]["rate"] < 3_100
    everyone = json.loads(run(where, "--throttled", "--all", "--json").stdout)
    assert {each["client_id"] for each in everyone} == {"large", "small"}


def test_a_broker_without_metrics(bootstrap: str) -> None:
    refused = run(bootstrap, "--throttled")
    assert refused.returncode == 1
    assert "metrics.http.listener is not set" in refused.stderr
