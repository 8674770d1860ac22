"""The log cleaner of a real broker: a child process cleans the files of a real disk."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.broker_process import BrokerProcess
from tests.support.topics import make_topic
from tests.support.waiting import wait_until

KEYS = 50
PATIENCE_S = 30
SETTINGS = {"log.cleaner.backoff.ms": "200", "log.segment.delete.delay.ms": "500"}


def write(broker: BrokerProcess, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for number in range(count):
        producer.produce("t", key=f"k{number % KEYS}", value=f"{number:08}" * 20)
        if number % 100 == 0:
            producer.flush()
    producer.flush()


def read(broker: BrokerProcess) -> list[tuple[int, str, str]]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            consumer.close()
            return found
        found.append((message.offset(), message.key().decode(), message.value().decode()))


@contextmanager
def serving(directory: Path, **settings: str) -> Iterator[BrokerProcess]:
    with BrokerProcess(directory, {**SETTINGS, **settings}) as broker:
        make_topic(broker.bootstrap, "t", cleanup_policy="compact", segment_bytes="100000")
        yield broker


@pytest.mark.parametrize("log_dirs", [None, "memory:"])
def test_a_compacted_topic_becomes_small_and_keeps_the_latest_values(
    tmp_path: Path, log_dirs: str | None
) -> None:
    settings = {} if log_dirs is None else {"log.dirs": log_dirs}
    with serving(tmp_path, **settings) as broker:
        write(broker, 5000)
        wait_until(lambda: len(read(broker)) < 1500, PATIENCE_S)
        found = read(broker)
        last = {key: value for _, key, value in found}
        assert last == {f"k{n % KEYS}": f"{n:08}" * 20 for n in range(5000 - KEYS, 5000)}
        assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
        if log_dirs is None:
            checkpoint = broker.log_dir / "cleaner-offset-checkpoint"
            wait_until(checkpoint.exists, PATIENCE_S)
            old = broker.log_dir / "t-0"
            wait_until(lambda: not list(old.glob("*.deleted")), PATIENCE_S)
            broker.restart()
            assert read(broker) == found


def test_the_child_that_cleans_is_quiet_and_ends_with_the_broker(tmp_path: Path) -> None:
    with serving(tmp_path, **{"log.cleaner.io.max.bytes.per.second": "50000"}) as broker:
        process = psutil.Process(broker.pid)
        write(broker, 5000)
        wait_until(lambda: any(one.nice() >= 10 for one in process.children()), PATIENCE_S)
        children = process.children()
        began = time.monotonic()
        broker.stop()
        assert time.monotonic() - began < 15
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert (len(gone), alive) == (len(children), [])
        assert not list((broker.log_dir / "t-0").glob("*.cleaned"))
