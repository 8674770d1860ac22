"""`pykafkalog perf` against a real broker."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.command_in_process import BrokerTool
from tests.support.installation import under_test


def perf(bootstrap: str, *words: str) -> Any:
    return BrokerTool("perf", bootstrap).parsed(*words)


def test_perf_consumes_the_records_that_it_produced(bootstrap: str, topic: str) -> None:
    sent = perf(bootstrap, "produce", topic, "--records", "5000", "--size", "100")
    assert (sent["records"], sent["bytes"], sent["failed"]) == (5000, 500_000, 0)
    assert 0 < sent["latency_ms"]["p50"] <= sent["latency_ms"]["p99"] <= sent["latency_ms"]["max"]
    read = perf(bootstrap, "consume", topic)
    assert (read["records"], read["bytes"]) == (5000, 500_000)
    assert perf(bootstrap, "consume", topic, "--records", "10")["records"] == 10


def test_a_rate_is_kept(bootstrap: str, topic: str) -> None:
    sent = perf(bootstrap, "produce", topic, "--records", "200", "--rate", "400")
    assert 0.45 < sent["seconds"] < 30
    assert sent["records"] == 200


def test_end_to_end(bootstrap: str, topic: str, tmp_path: Path) -> None:
    picture = tmp_path / "latency.svg"
    found = perf(bootstrap, "latency", topic, "--records", "50", "--plot", str(picture))
    assert found["records"] == 50
    assert found["latency_ms"]["p50"] > 0
    assert picture.read_text().startswith("<?xml")


def test_perf_names_a_topic_without_records(bootstrap: str) -> None:
    assert "not-there" in BrokerTool("perf", bootstrap).refusal("consume", "not-there")


@pytest.mark.parametrize("test", ["produce", "latency"])
def test_ctrl_c_ends_it_and_tells_what_was_measured(bootstrap: str, topic: str, test: str) -> None:
    used = under_test()
    words = ("perf", test, topic, "-b", bootstrap, "--seconds", "60", "--rate", "200", "--json")
    with used.begin([*used.tool(), *words]) as process:
        wait_for_records(bootstrap, topic, 50)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "")
    found = json.loads(output)
    assert found["records"] > 0
    assert found["seconds"] < 60


def wait_for_records(bootstrap: str, topic: str, count: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "perf-watch"})
    for _ in range(300):
        try:
            known = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            ends = [
                consumer.get_watermark_offsets(TopicPartition(topic, one), timeout=10)[1]
                for one in known
            ]
        except KafkaException:  # it is being made
            ends = []
        if sum(ends) >= count:
            break
        time.sleep(0.1)
    consumer.close()
