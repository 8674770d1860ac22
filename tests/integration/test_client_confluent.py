"""confluent-kafka (librdkafka), unmodified and with its default settings."""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support.topics import make_topic

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def consume(consumer: Consumer, count: int, timeout: float = 30) -> list[Any]:
    """The next `count` messages, or what came within the time."""
    got: list[Any] = []
    deadline = time.monotonic() + timeout
    while len(got) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(got), timeout=0.5):
            assert message.error() is None, message.error()
            got.append(message)
    return got


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", CODECS)
def test_produces_and_consumes_every_codec(
    bootstrap: str, topic: str, group: str, codec: str, idempotent: bool
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": idempotent,
        }
    )
    failures: list[KafkaError] = []
    records = [(f"k{i}".encode(), f"value {i} ".encode() * 20) for i in range(1000)]
    for key, value in records:
        producer.produce(
            topic,
            key=key,
            value=value,
            headers=[("a", b"1"), ("b", None)],
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert failures == []
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    got = consume(consumer, len(records))
    consumer.close()
    assert [(m.key(), m.value()) for m in got] == records
    assert [m.offset() for m in got] == list(range(len(records)))
    assert got[0].headers() == [("a", b"1"), ("b", None)]


def test_a_commit_with_metadata_comes_back(bootstrap: str, topic: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x")
    producer.flush(10)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition(topic, 0, 1, "note to self")], asynchronous=False)
    (back,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    assert (back.offset, back.metadata) == (1, "note to self")
    consumer.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_groups_rebalance_with_every_strategy(
    bootstrap: str, topic: str, group: str, strategy: str
) -> None:
    make_topic(bootstrap, topic, partitions=4)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": strategy,
    }
    first, second = Consumer(settings), Consumer(settings)

    def settle(*consumers: Consumer) -> list[set[int]]:
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            for c in consumers:
                c.poll(0.1)
            parts = [{p.partition for p in c.assignment()} for c in consumers]
            if sorted(p for s in parts for p in s) == [0, 1, 2, 3] and all(parts):
                return parts
        raise AssertionError(f"no stable assignment: {parts}")

    first.subscribe([topic])
    settle(first)
    second.subscribe([topic])
    parts = settle(first, second)
    assert [len(p) for p in parts] == [2, 2]
    second.close()
    assert settle(first) == [{0, 1, 2, 3}]
    first.close()


def test_a_static_member_returns_without_a_rebalance(
    bootstrap: str, topic: str, group: str
) -> None:
    make_topic(bootstrap, topic, partitions=2)
    rebalances = {"a": 0, "b": 0}

    def start(name: str) -> Consumer:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "group.instance.id": name}
        )

        def assigned(_c: Consumer, _p: list[TopicPartition]) -> None:
            rebalances[name] += 1

        consumer.subscribe([topic], on_assign=assigned)
        return consumer

    def settle(*consumers: Consumer) -> None:
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            for c in consumers:
                c.poll(0.1)
            if [len(c.assignment()) for c in consumers] == [2 // len(consumers)] * len(consumers):
                return
        raise AssertionError("no stable assignment")

    a, b = start("a"), start("b")
    settle(a, b)
    before = rebalances["a"]
    b.close()
    b = start("b")
    settle(a, b)
    assert rebalances["a"] == before
    a.close()
    b.close()


def test_admin_topics_partitions_configs_and_offsets(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "60000"})])[topic].result(10)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(10)
    described = admin.list_topics(topic, timeout=10).topics[topic]
    assert sorted(described.partitions) == [0, 1, 2]
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(10)
    assert configs["retention.ms"].value == "60000"
    assert not configs["retention.ms"].is_default
    assert configs["segment.bytes"].value == "1073741824"
    assert configs["segment.bytes"].is_default
    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("segment.bytes", "1048576", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    admin.incremental_alter_configs([change])[change].result(10)
    configs = admin.describe_configs([resource])[resource].result(10)
    assert configs["segment.bytes"].value == "1048576"
    assert configs["retention.ms"].is_default
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(30):
        producer.produce(topic, str(i).encode(), partition=0)
    producer.flush(10)
    tp = TopicPartition(topic, 0)
    assert admin.list_offsets({tp: OffsetSpec.latest()})[tp].result(10).offset == 30
    admin.delete_records([TopicPartition(topic, 0, 10)])[tp].result(10)
    assert admin.list_offsets({tp: OffsetSpec.earliest()})[tp].result(10).offset == 10
    admin.delete_topics([topic])[topic].result(10)
    assert topic not in admin.list_topics(timeout=10).topics


def test_groups_are_listed_described_and_deleted(bootstrap: str, topic: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x")
    producer.flush(10)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    assert len(consume(consumer, 1)) == 1
    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(10)
    assert described.state.name == "STABLE"
    assert [p.topic for m in described.members for p in m.assignment.topic_partitions] == [topic]
    consumer.close()
    assert group in {g.group_id for g in admin.list_consumer_groups().result(10).valid}
    admin.delete_consumer_groups([group])[group].result(10)
    assert group not in {g.group_id for g in admin.list_consumer_groups().result(10).valid}


def test_a_message_too_large_is_refused_and_the_next_one_goes_through(
    bootstrap: str, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 4_000_000})
    errors: list[Any] = []
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda e, _: errors.append(e))
    producer.flush(20)
    producer.produce(topic, b"x", on_delivery=lambda e, _: errors.append(e))
    producer.flush(20)
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert errors[1] is None
