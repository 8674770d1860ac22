"""`pykafkalog topics`: sizes, trim and watch against a real broker."""

import json
import signal
import subprocess
import time

import pytest
from confluent_kafka import Producer

from tests.support.command_in_process import BrokerTool
from tests.support.installation import under_test
from tests.support.topics import make_topic


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """100 records in each of two partitions, a second apart from 1000 s on."""
    make_topic(bootstrap, topic, partitions=2, retention_ms="-1")
    producer = Producer({"bootstrap.servers": bootstrap})
    for index in range(200):
        at = 1_000_000 + index // 2 * 1000
        producer.produce(topic, b"x" * 100, partition=index % 2, timestamp=at)
    assert producer.flush(10) == 0
    return topic


@pytest.fixture
def topics(bootstrap: str) -> BrokerTool:
    return BrokerTool("topics", bootstrap)


def starts(topics: BrokerTool, topic: str) -> list[int]:
    (described,) = topics.parsed("--describe", topic)
    return [partition["start"] for partition in described["partitions"]]


def test_sizes_and_descriptions(topics: BrokerTool, filled: str) -> None:
    (sized,) = topics.parsed("--sizes", filled)
    assert (sized["partitions"], sized["records"]) == (2, 200)
    assert 20_000 < sized["bytes"] == sized["bytes_of_all_replicas"]
    (described,) = topics.parsed("--describe", filled)
    assert described["configs"] == {"retention.ms": "-1"}
    first = described["partitions"][0]
    assert (first["leader"], first["in_sync"], first["start"], first["end"]) == (1, [1], 0, 100)
    assert filled in [each["topic"] for each in topics.parsed()]
    shown = topics("--sizes").splitlines()
    assert [filled, "2", "200"] in [line.split()[:3] for line in shown]


def test_trim_by_offset_time_and_to_the_end(topics: BrokerTool, filled: str) -> None:
    planned = topics.parsed("--trim", filled, "--before", "10", "--dry-run")
    assert [(each["deleted"], each["dry_run"]) for each in planned] == [(10, True)] * 2
    assert starts(topics, filled) == [0, 0]
    topics.parsed("--trim", f"{filled}:1", "--before", "10")
    assert starts(topics, filled) == [0, 10]
    topics.parsed("--trim", filled, "--before", "1970-01-01T00:16:45")  # 1005 s
    assert starts(topics, filled) == [5, 10]
    said = topics.refusal("--trim", filled, "--before", "101")
    assert f"{filled}:0 has offsets 5 to 100, not 101; nothing was deleted" in said
    topics.parsed("--trim", filled, "--before", "end")
    assert starts(topics, filled) == [100, 100]


def test_impossible_trims_are_refused(topics: BrokerTool, filled: str, topic: str) -> None:
    compacted = f"{topic}-compacted"
    make_topic(topics.bootstrap, compacted, cleanup_policy="compact")
    BrokerTool("produce", topics.bootstrap)(compacted, "--key", "k", stdin=b"v\n")
    said = topics.refusal("--trim", compacted, "--before", "end")
    assert "records can only be deleted where cleanup.policy has `delete`" in said
    assert "has no partition 7" in topics.refusal("--trim", f"{filled}:7", "--before", "1")
    assert "--before WHERE go together" in topics.refusal("--trim", filled)


def watching(bootstrap: str, topic: str) -> "subprocess.Popen[str]":
    used = under_test()
    words = ("topics", "-b", bootstrap, "--watch", topic, "--interval", "0.2")
    return used.begin([*used.tool(), *words])


def test_a_watched_topic_grows_and_ctrl_c_ends_it_quietly(bootstrap: str, filled: str) -> None:
    process = watching(bootstrap, filled)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    assert (first["topic"], first["records"], first["new_records"]) == (filled, 200, 0)
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(50):
        producer.produce(filled, b"x" * 100, partition=0)
    assert producer.flush(10) == 0
    deadline = time.monotonic() + 10
    rates = [0.0]
    while (now := json.loads(process.stdout.readline()))["new_records"] < 50:
        rates.append(now["records_per_s"])
        assert time.monotonic() < deadline
    assert now["grown_bytes"] > 0
    assert max([*rates, now["records_per_s"]]) > 10
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (130, "")


def test_a_topic_deleted_while_watched_ends_it(topics: BrokerTool, filled: str) -> None:
    process = watching(topics.bootstrap, filled)
    assert process.stdout is not None
    process.stdout.readline()
    topics("--delete", filled)
    _, said = process.communicate(timeout=10)
    assert (process.returncode, said) == (
        1,
        f"pykafkalog topics: there is no topic {filled} any more\n",
    )
