"""Transactions with unmodified clients: commit, abort, zombies, offsets in a transaction (S-TXN-*).

Every scenario here also passes on Apache Kafka (PYKAFKALOG_TEST_BROKER=apache).
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.support.topics import make_topic

PATIENCE_S = 30


@pytest.fixture
def two_partitions(bootstrap: str, topic: str) -> str:
    """A topic that is there."""
    make_topic(bootstrap, topic, partitions=2)
    return topic


def producer(bootstrap: str, transactional_id: str, **options: Any) -> confluent_kafka.Producer:
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            **{name.replace("_", "."): value for name, value in options.items()},
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def send(to: confluent_kafka.Producer, topic: str, *values: str, partition: int = 0) -> None:
    """Produce and wait until the broker has it; in an open transaction."""
    errors: list[Any] = []
    for value in values:
        to.produce(
            topic,
            value.encode(),
            partition=partition,
            on_delivery=lambda error, message: errors.append(error) if error else None,
        )
    to.flush(PATIENCE_S)
    assert not errors, errors


def read(bootstrap: str, topic: str, isolation: str, *, partitions: int = 1) -> list[str]:
    """Everything that a reader of this isolation sees now."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    found = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(partitions)])
        at_end = 0
        while at_end < partitions:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"no end of {topic} in sight, got {found}"
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                at_end += 1
            else:
                found.append(message.value().decode())
    finally:
        consumer.close()
    return found


def committed(bootstrap: str, topic: str, **options: Any) -> list[str]:
    return read(bootstrap, topic, "read_committed", **options)


def uncommitted(bootstrap: str, topic: str, **options: Any) -> list[str]:
    return read(bootstrap, topic, "read_uncommitted", **options)


# ---- confluent-kafka (librdkafka)


def test_commit_and_abort_over_two_partitions(bootstrap: str, two_partitions: str) -> None:
    topic = two_partitions
    mine = producer(bootstrap, f"{topic}-id")
    mine.begin_transaction()
    send(mine, topic, "a", "b")
    send(mine, topic, "c", partition=1)
    assert committed(bootstrap, topic, partitions=2) == []
    assert sorted(uncommitted(bootstrap, topic, partitions=2)) == ["a", "b", "c"]
    mine.commit_transaction(PATIENCE_S)
    assert sorted(committed(bootstrap, topic, partitions=2)) == ["a", "b", "c"]

    mine.begin_transaction()
    send(mine, topic, "aborted")
    mine.abort_transaction(PATIENCE_S)
    mine.begin_transaction()
    send(mine, topic, "d")
    mine.commit_transaction(PATIENCE_S)
    assert committed(bootstrap, topic) == ["a", "b", "d"]
    assert uncommitted(bootstrap, topic) == ["a", "b", "aborted", "d"]


def test_s_txn_1_an_open_transaction_holds_back_what_follows(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    first = producer(bootstrap, f"{topic}-1")
    second = producer(bootstrap, f"{topic}-2")
    first.begin_transaction()
    send(first, topic, "first")
    second.begin_transaction()
    send(second, topic, "second")
    second.commit_transaction(PATIENCE_S)
    assert committed(bootstrap, topic) == []
    assert uncommitted(bootstrap, topic) == ["first", "second"]
    first.abort_transaction(PATIENCE_S)
    assert committed(bootstrap, topic) == ["second"]


def test_s_txn_4_a_new_owner_fences_a_zombie_and_aborts_its_transaction(
    bootstrap: str, topic: str
) -> None:
    make_topic(bootstrap, topic)
    zombie = producer(bootstrap, f"{topic}-id")
    zombie.begin_transaction()
    send(zombie, topic, "zombie")
    heir = producer(bootstrap, f"{topic}-id")
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    heir.begin_transaction()
    send(heir, topic, "heir")
    heir.commit_transaction(PATIENCE_S)
    assert committed(bootstrap, topic) == ["heir"]
    assert uncommitted(bootstrap, topic) == ["zombie", "heir"]


def test_s_txn_5_offsets_are_seen_when_the_transaction_commits(
    bootstrap: str, topic: str, group: str
) -> None:
    make_topic(bootstrap, topic, f"{topic}-out")
    source = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        source.produce(topic, str(number).encode(), partition=0)
    source.flush(PATIENCE_S)

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    place = [confluent_kafka.TopicPartition(topic, 0)]
    mine = producer(bootstrap, f"{topic}-id")
    try:
        consumer.subscribe([topic])

        def transform(count: int, end: Callable[[float], Any]) -> None:
            mine.begin_transaction()
            for _ in range(count):
                message = consumer.poll(PATIENCE_S)
                assert message is not None and not message.error()
                mine.produce(f"{topic}-out", b"out " + message.value(), partition=0)
            mine.flush(PATIENCE_S)  # An abort throws away what was not sent.
            mine.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            )
            end(PATIENCE_S)

        transform(4, mine.commit_transaction)
        assert consumer.committed(place, PATIENCE_S)[0].offset == 4
        transform(3, mine.abort_transaction)
        assert consumer.committed(place, PATIENCE_S)[0].offset == 4
        consumer.seek(confluent_kafka.TopicPartition(topic, 0, 4))
        transform(6, mine.commit_transaction)
        assert consumer.committed(place, PATIENCE_S)[0].offset == 10
    finally:
        consumer.close()
    assert committed(bootstrap, f"{topic}-out") == [f"out {number}" for number in range(10)]
    assert len(uncommitted(bootstrap, f"{topic}-out")) == 13


def test_s_txn_4_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    slow = producer(bootstrap, f"{topic}-id", transaction_timeout_ms=1000)
    slow.begin_transaction()
    send(slow, topic, "late")
    waiting = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        waiting.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        plain = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        plain.produce(topic, b"plain", partition=0)
        plain.flush(PATIENCE_S)
        message = waiting.poll(PATIENCE_S)  # A parked fetch is woken by the marker.
        assert message is not None and message.value() == b"plain"
    finally:
        waiting.close()
    with pytest.raises(confluent_kafka.KafkaException):
        slow.commit_transaction(PATIENCE_S)


def test_s_txn_4_a_timeout_above_the_limit_is_refused(bootstrap: str, topic: str) -> None:
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        producer(bootstrap, f"{topic}-id", transaction_timeout_ms=900_001)
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.INVALID_TRANSACTION_TIMEOUT


# ---- kafka-python


@pytest.fixture
def kafka_python(bootstrap: str, topic: str) -> Iterator[Any]:
    made = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
    made.init_transactions()
    try:
        yield made
    finally:
        made.close(timeout=1)


def test_kafka_python_commits_and_aborts(bootstrap: str, topic: str, kafka_python: Any) -> None:
    make_topic(bootstrap, topic)
    for value, end in (
        (b"1", kafka_python.commit_transaction),
        (b"2", kafka_python.abort_transaction),
        (b"3", kafka_python.commit_transaction),
    ):
        kafka_python.begin_transaction()
        kafka_python.send(topic, value, partition=0).get(PATIENCE_S)
        end()
    assert committed(bootstrap, topic) == ["1", "3"]
    assert uncommitted(bootstrap, topic) == ["1", "2", "3"]
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
    )
    assert [message.value for message in consumer] == [b"1", b"3"]
    consumer.close()


def test_kafka_python_zombie_is_fenced(bootstrap: str, topic: str, kafka_python: Any) -> None:
    make_topic(bootstrap, topic)
    kafka_python.begin_transaction()
    kafka_python.send(topic, b"zombie", partition=0).get(PATIENCE_S)
    heir = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
    heir.init_transactions()
    with pytest.raises(kafka.errors.KafkaError):
        kafka_python.commit_transaction()
    heir.begin_transaction()
    heir.send(topic, b"heir", partition=0).get(PATIENCE_S)
    heir.commit_transaction()
    heir.close()
    assert committed(bootstrap, topic) == ["heir"]


# ---- aiokafka


def test_aiokafka_commits_aborts_and_moves_offsets(bootstrap: str, topic: str, group: str) -> None:
    make_topic(bootstrap, topic)

    async def main() -> None:
        mine = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=f"{topic}-id"
        )
        await mine.start()
        try:
            async with mine.transaction():
                await mine.send_and_wait(topic, b"1", partition=0)
            with pytest.raises(ZeroDivisionError):
                async with mine.transaction():
                    await mine.send_and_wait(topic, b"2", partition=0)
                    raise ZeroDivisionError
            place = aiokafka.TopicPartition(topic, 0)
            async with mine.transaction():
                await mine.send_and_wait(topic, b"3", partition=0)
                await mine.send_offsets_to_transaction({place: 7}, group)
        finally:
            await mine.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            consumer.assign([place])
            assert await consumer.committed(place) == 7
            await consumer.seek_to_beginning(place)
            values = [(await consumer.getone()).value for _ in range(2)]
            assert values == [b"1", b"3"]
        finally:
            await consumer.stop()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_aiokafka_zombie_is_fenced(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)

    async def main() -> None:
        zombie, heir = (
            aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
            for _ in range(2)
        )
        await zombie.start()
        await zombie.begin_transaction()
        await zombie.send_and_wait(topic, b"zombie", partition=0)
        await heir.start()
        try:
            with pytest.raises(aiokafka.errors.ProducerFenced):
                await zombie.commit_transaction()
            async with heir.transaction():
                await heir.send_and_wait(topic, b"heir", partition=0)
        finally:
            await heir.stop()
            await zombie.stop()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert committed(bootstrap, topic) == ["heir"]
