"""The log cleaner of a real broker: a child process cleans the files of a real disk."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker_process import BrokerProcess

KEYS = 50
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "100000"}
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


def wait_until(is_so: Any, seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.1)


@contextmanager
def serving(directory: Path, **settings: str) -> Iterator[BrokerProcess]:
    with BrokerProcess(directory, {**SETTINGS, **settings}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("t", 1, config=COMPACTED)])["t"].result(15)
        yield broker


@pytest.mark.parametrize("log_dirs", [None, "memory:"])
def test_a_compacted_topic_becomes_small_and_keeps_the_latest_values(
    tmp_path: Path, log_dirs: str | None
) -> None:
    settings = {} if log_dirs is None else {"log.dirs": log_dirs}
    with serving(tmp_path, **settings) as broker:
        write(broker, 5000)
        wait_until(lambda: len(read(broker)) < 1500)
        found = read(broker)
        last = {key: value for _, key, value in found}
        assert last == {f"k{n % KEYS}": f"{n:08}" * 20 for n in range(5000 - KEYS, 5000)}
        assert [offset for offset, _, _ in found] == sorted({offset for offset, _, _ in found})
        if log_dirs is None:
            checkpoint = broker.log_dir / "cleaner-offset-checkpoint"
            wait_until(checkpoint.exists)
            wait_until(lambda: not list((broker.log_dir / "t-0").glob("*.deleted")))
            broker.restart()
            assert read(broker) == found


def test_the_child_that_cleans_is_quiet_and_ends_with_the_broker(tmp_path: Path) -> None:
    with serving(tmp_path, **{"log.cleaner.io.max.bytes.per.second": "50000"}) as broker:
        process = psutil.Process(broker.pid)
        write(broker, 5000)
        wait_until(lambda: any(child.nice() >= 10 for child in process.children()))
        children = process.children()
        began = time.monotonic()
        broker.stop()
        assert time.monotonic() - began < 15
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert (len(gone), alive) == (len(children), [])
        assert not list((broker.log_dir / "t-0").glob("*.cleaned"))
