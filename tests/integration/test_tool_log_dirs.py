"""`pykafkalog log-dirs`: sizes and moves, against a broker with two log directories."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.command_in_process import BrokerTool
from tests.support.either_broker import either_broker
from tests.support.topics import make_topic


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def log_dirs(directories: Path) -> Iterator[BrokerTool]:
    """The command on a broker with the log directories `a` and `b`."""
    dirs = {"log.dirs": f"{directories}/a,{directories}/b"}
    broker = either_broker(directories / "broker", dirs)
    broker.log_dir = directories / "a"  # ApacheKafka looks there whether it is formatted
    with broker:
        yield BrokerTool("log-dirs", broker.bootstrap)


@pytest.fixture
def filled(log_dirs: BrokerTool, topic: str) -> str:
    """30 MB in one partition."""
    make_topic(log_dirs.bootstrap, topic)
    producer = Producer({"bootstrap.servers": log_dirs.bootstrap, "linger.ms": 20})
    for _ in range(3000):
        producer.produce(topic, b"x" * 10_000, partition=0)
        producer.poll(0)
    assert producer.flush(30) == 0
    return topic


def test_sizes_by_directory_topic_and_partition(
    log_dirs: BrokerTool, directories: Path, filled: str
) -> None:
    found = {each["path"]: each for each in log_dirs.parsed()}
    assert set(found) == {f"{directories}/a", f"{directories}/b"}
    assert all(each["total_bytes"] > each["usable_bytes"] > 0 for each in found.values())
    (log,) = log_dirs.parsed("--partitions", filled)
    assert (log["topic"], log["partition"], log["broker"]) == (filled, 0, 1)
    assert found[log["directory"]]["bytes"] >= log["bytes"] > 30_000_000
    by_topic = [each for each in log_dirs.parsed("--topics") if each["topic"] == filled]
    assert [(each["logs"], each["bytes"]) for each in by_topic] == [(1, log["bytes"])]


def test_a_partition_is_moved_and_waited_for(
    log_dirs: BrokerTool, directories: Path, filled: str
) -> None:
    (before,) = log_dirs.parsed("--partitions", filled)
    target = str(directories / ("b" if before["directory"].endswith("/a") else "a"))
    move = ("--move", filled, "--to", target)
    (planned,) = log_dirs.parsed(*move, "--dry-run")
    assert (planned["from"], planned["to"]) == (before["directory"], target)
    assert log_dirs.parsed("--partitions", filled) == [before]
    (moved,) = log_dirs.parsed(*move, "--wait")
    assert moved["done"] == "moved"
    (after,) = log_dirs.parsed("--partitions", filled)
    assert (after["directory"], after["bytes"]) == (target, before["bytes"])
    assert log_dirs.parsed(*move, "--wait") == []
    assert log_dirs.parsed("--moving") == []


def test_impossible_moves_are_refused(log_dirs: BrokerTool, filled: str) -> None:
    for words, said in (
        (("--move", filled, "--to", "/nowhere"), "there is no log directory /nowhere; known: "),
        (("--move", f"{filled}:9", "--to", "/nowhere"), f"{filled} has no partition 9"),
        (("--move", filled), "--move TOPIC and --to DIR go together"),
        (("--wait",), "go with --move"),
        (("--broker", "9"), "there is no broker 9; known: 1"),
    ):
        assert said in log_dirs.refusal(*words)
