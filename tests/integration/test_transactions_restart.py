"""A broker that is killed in the middle of transactions (S-TXN-6)."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest

from tests.integration.test_transactions import (
    PATIENCE_S,
    committed,
    producer,
    send,
    uncommitted,
)
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import LOGGING, ROOT, kafka_jars
from tests.support.topics import make_topic
from tests.support.waiting import wait_until


def length_of(broker: BrokerProcess, topic: str) -> int:
    """How many offsets its two partitions have."""
    asking = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "-"})
    try:
        places = [confluent_kafka.TopicPartition(topic, partition) for partition in range(2)]
        return sum(asking.get_watermark_offsets(one, PATIENCE_S)[1] for one in places)
    finally:
        asking.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(
        tmp_path,
        {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"},
    ) as process:
        yield process


def test_s_txn_6_an_open_transaction_is_committed_after_a_kill(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "t", partitions=2)
    mine = producer(broker.bootstrap, "id")
    other = producer(broker.bootstrap, "other")
    for one, value in ((mine, "mine"), (other, "other")):
        one.begin_transaction()
        send(one, "t", value)
        send(one, "t", value, partition=1)
    broker.kill()
    broker.start()
    assert committed(broker.bootstrap, "t") == []
    send(mine, "t", "after")
    mine.commit_transaction(PATIENCE_S)
    other.abort_transaction(PATIENCE_S)
    assert committed(broker.bootstrap, "t", partitions=2) == ["mine", "after", "mine"] or sorted(
        committed(broker.bootstrap, "t", partitions=2)
    ) == ["after", "mine", "mine"]
    assert "other" in uncommitted(broker.bootstrap, "t")


def test_s_txn_6_the_timeout_of_an_open_transaction_survives_a_kill(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "t")
    mine = producer(broker.bootstrap, "id", transaction_timeout_ms=3000)
    mine.begin_transaction()
    send(mine, "t", "late")
    broker.kill()
    broker.start()
    plain = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    plain.produce("t", b"plain", partition=0)
    plain.flush(PATIENCE_S)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None and message.value() == b"plain"
    finally:
        consumer.close()


def test_s_txn_6_kills_between_many_transactions_lose_and_double_nothing(
    broker: BrokerProcess,
) -> None:
    make_topic(broker.bootstrap, "t", partitions=3)
    mine = producer(broker.bootstrap, "id")
    expected = []
    for number in range(60):
        mine.begin_transaction()
        for partition in range(3):
            mine.produce("t", f"{number}".encode(), partition=partition)
        if number % 10 == 3:
            broker.kill()
            broker.start()
        if number % 4 == 1:
            mine.flush(PATIENCE_S)
            mine.abort_transaction(PATIENCE_S)
        else:
            mine.commit_transaction(PATIENCE_S)
            expected += [f"{number}"] * 3
            if number % 10 == 7:
                broker.kill()  # The decision is on disk, the markers may not be.
                broker.start()
    assert sorted(committed(broker.bootstrap, "t", partitions=3)) == sorted(expected)


def test_s_txn_5_offsets_in_an_open_transaction_survive_a_kill(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "t")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    place = confluent_kafka.TopicPartition("t", 0, 5)
    mine = producer(broker.bootstrap, "id")
    try:
        mine.begin_transaction()
        send(mine, "t", "x")
        mine.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), PATIENCE_S)
        broker.kill()
        broker.start()
        mine.commit_transaction(PATIENCE_S)
        assert consumer.committed([place], PATIENCE_S)[0].offset == 5
    finally:
        consumer.close()


def test_s_txn_7_a_java_copy_is_exact_over_kills(broker: BrokerProcess) -> None:
    make_topic(broker.bootstrap, "in", "out", partitions=2)
    count = 12_000
    source = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        source.produce("in", str(number).encode(), partition=number % 2)
    source.flush(PATIENCE_S)
    program = str(ROOT / "tests/conformance/TransactionalCopy.java")
    copy = subprocess.Popen(
        [
            *("java", "-Xmx512m", *LOGGING, "-cp", kafka_jars(), program),
            *(broker.bootstrap, "in", "out", "g", str(count)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        kills = 0
        while copy.poll() is None and kills < 4:
            length = partial(length_of, broker, "out")
            goal = length() + 20
            wait_until(lambda: length() > goal or copy.poll() is not None, 60)  # noqa: B023
            broker.kill()
            broker.start()
            kills += 1
        printed, _ = copy.communicate(timeout=240)
    finally:
        copy.kill()
    assert kills >= 2, "it was done before the broker was killed"
    assert copy.returncode == 0, printed
    assert f"copied {count} in" in printed and "zombie fenced" in printed, printed
    copied = committed(broker.bootstrap, "out", partitions=2)
    copied.remove("heir")
    assert sorted(copied, key=int) == [str(number) for number in range(count)]
