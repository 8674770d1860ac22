"""`pykafkalog log-dirs`: sizes and moves, against a broker with two log directories."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.command_in_process import in_process


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def two(directories: Path) -> Iterator[str]:
    """Where a broker with the log directories `a` and `b` listens."""
    dirs = {"log.dirs": f"{directories}/a,{directories}/b"}
    broker: Any
    if os.environ.get("PYKAFKALOG_TEST_BROKER") == "apache":
        broker = ApacheKafka(directories / "broker", dirs)
        broker.log_dir = directories / "a"
    else:
        broker = BrokerProcess(directories / "broker", dirs)
    with broker:
        yield broker.bootstrap


@pytest.fixture
def filled(two: str, topic: str) -> str:
    """30 MB in one partition."""
    done = in_process("topics", "-b", two, "--create", topic, "--partitions", "1")
    assert done.returncode == 0, done.stderr
    producer = Producer({"bootstrap.servers": two, "linger.ms": 20})
    for _ in range(3000):
        producer.produce(topic, b"x" * 10_000, partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0
    return topic


def log_dirs(two: str, *words: str) -> list[Any]:
    done = in_process("log-dirs", "-b", two, *words, "--json")
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_sizes_by_directory_topic_and_partition(two: str, directories: Path, filled: str) -> None:
    found = {each["path"]: each for each in log_dirs(two)}
    assert set(found) == {f"{directories}/a", f"{directories}/b"}
    assert all(each["total_bytes"] > each["usable_bytes"] > 0 for each in found.values())
    (log,) = log_dirs(two, "--partitions", filled)
    assert (log["topic"], log["partition"], log["broker"]) == (filled, 0, 1)
    assert found[log["directory"]]["bytes"] >= log["bytes"] > 30_000_000
    by_topic = [each for each in log_dirs(two, "--topics") if each["topic"] == filled]
    assert [(each["logs"], each["bytes"]) for each in by_topic] == [(1, log["bytes"])]


def test_a_partition_is_moved_and_waited_for(two: str, directories: Path, filled: str) -> None:
    (before,) = log_dirs(two, "--partitions", filled)
    target = str(directories / ("b" if before["directory"].endswith("/a") else "a"))
    move = ("--move", filled, "--to", target)
    (planned,) = log_dirs(two, *move, "--dry-run")
    assert (planned["from"], planned["to"]) == (before["directory"], target)
    assert log_dirs(two, "--partitions", filled) == [before]
    (moved,) = log_dirs(two, *move, "--wait")
    assert moved["done"] == "moved"
    (after,) = log_dirs(two, "--partitions", filled)
    assert (after["directory"], after["bytes"]) == (target, before["bytes"])
    assert log_dirs(two, *move, "--wait") == []
    assert log_dirs(two, "--moving") == []


def test_what_cannot_be_moved(two: str, filled: str) -> None:
    for words, said in (
        (("--move", filled, "--to", "/nowhere"), "there is no log directory /nowhere; known: "),
        (("--move", f"{filled}:9", "--to", "/nowhere"), f"{filled} has no partition 9"),
        (("--move", filled), "--move TOPIC and --to DIR go together"),
        (("--wait",), "go with --move"),
        (("--broker", "9"), "there is no broker 9; known: 1"),
    ):
        refused = in_process("log-dirs", "-b", two, *words)
        assert refused.returncode == 1
        assert said in refused.stderr
