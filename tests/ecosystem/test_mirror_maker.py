"""MirrorMaker 2: a topic with its configs, and a group with its offsets, from broker to broker.

Exactly once: the mirror's source tasks write records and their own offsets in transactions on the
target. The source is Apache Kafka when `PYKAFKALOG_TEST_BROKER=apache`, as the target is.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.ecosystem.conftest import SETTINGS
from tests.support.ecosystem.jars import jars
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S, QUIET, Found, Tail, send
from tests.support.either_broker import EitherBroker, either_broker
from tests.support.kafka_jars import LOGGING, SHORT_LIVED
from tests.support.topics import make_topic

RECORDS, PARTITIONS = 4000, 2
HEADERS = (("origin", b"here"), ("origin", b"and there"))


@pytest.fixture
def target(tmp_path: Path) -> Iterator[EitherBroker]:
    with either_broker(tmp_path / "target", SETTINGS) as made:
        yield made


def mirror(directory: Path, source: str, target: str) -> ProgramProcess:
    """MirrorMaker as a process of its own, from `a` to `b` (KIP-382, KIP-710)."""
    settings = {
        "clusters": "a, b",
        "a.bootstrap.servers": source,
        "b.bootstrap.servers": target,
        "a->b.enabled": "true",
        "b->a.enabled": "false",
        "a->b.topics": "orders",
        "a->b.groups": "readers",
        "b.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "2",
        "refresh.topics.interval.seconds": "2",
        "sync.topic.configs.interval.seconds": "2",
        "offset.lag.max": "0",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "500",
    }
    directory.mkdir(parents=True)
    properties = directory / "mirror.properties"
    properties.write_text("".join(f"{k} = {v}\n" for k, v in settings.items()))
    return ProgramProcess(
        directory,
        [
            *("java", "-Xmx512m", *SHORT_LIVED, *LOGGING, "-cp", jars("connect")),
            *("org.apache.kafka.connect.mirror.MirrorMaker", str(properties)),
        ],
        name="mirror",
    )


def by_partition(records: list[Found]) -> dict[int, list[tuple[object, ...]]]:
    found = defaultdict(list)
    for record in records:
        found[record.partition].append((record.key, record.value, record.headers, record.timestamp))
    return dict(found)


def read_and_commit(bootstrap: str, group: str, topic: str, count: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe([topic])
    seen = 0
    while seen < count:
        seen += len([one for one in consumer.consume(500, 1) if one.error() is None])
    consumer.commit(asynchronous=False)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, **QUIET}
    )
    places = [confluent_kafka.TopicPartition(topic, p) for p in range(PARTITIONS)]
    offsets = [place.offset for place in consumer.committed(places, 10)]
    consumer.close()
    return offsets


def config_of(bootstrap: str, topic: str, key: str) -> str | None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    asked = ConfigResource(ResourceType.TOPIC, topic)
    return str(admin.describe_configs([asked])[asked].result(PATIENCE_S)[key].value)


def test_a_topic_and_its_group_are_mirrored_exactly_once_over_kills(
    broker: EitherBroker, target: EitherBroker, tmp_path: Path
) -> None:
    records = [(b"key%d" % (at % 100), b"order %d" % at) for at in range(RECORDS)]
    make_topic(broker.bootstrap, "orders", partitions=PARTITIONS, retention_ms="123456789")
    third = RECORDS // 3
    send(broker.bootstrap, "orders", records[:third], HEADERS)
    with (
        mirror(tmp_path / "mirror", broker.bootstrap, target.bootstrap) as program,
        Tail(broker.bootstrap, "orders", PARTITIONS) as original,
        Tail(target.bootstrap, "a.orders", PARTITIONS) as copy,
    ):
        program.wait_until(copy.at_least(third), PATIENCE_S, "the first third is mirrored")
        program.kill()
        send(broker.bootstrap, "orders", records[third : 2 * third], HEADERS)
        program.start()
        program.wait_until(copy.at_least(2 * third), PATIENCE_S, "it goes on after a kill")
        for one in (target, broker):
            one.kill()
            one.start()
        send(broker.bootstrap, "orders", records[2 * third :], HEADERS)
        program.wait_until(copy.at_least(RECORDS), PATIENCE_S, "all is mirrored")
        read_and_commit(broker.bootstrap, "readers", "orders", RECORDS)

        def offsets_came() -> bool:
            # Offsets on the target are not those of the source: markers of transactions count, too.
            # A synced offset is the end of the copy, because the group has read to the end.
            ends = [0] * PARTITIONS
            for record in copy.records:
                ends[record.partition] = max(ends[record.partition], record.offset + 1)
            return committed(target.bootstrap, "readers", "a.orders") == ends

        program.wait_until(offsets_came, PATIENCE_S, "the group's offsets are mirrored")
        program.stop()
        copy.nothing_more()
        original.nothing_more(0.5)
        assert len(original.records) == RECORDS
        assert by_partition(copy.records) == by_partition(original.records)
        assert {record.headers for record in copy.records} == {HEADERS}
        assert config_of(target.bootstrap, "a.orders", "retention.ms") == "123456789"
