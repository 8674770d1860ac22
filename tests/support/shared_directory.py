"""A log directory that Apache Kafka and this broker serve in turn, and a client's view of it.

shared = SharedDirectory(tmp_path, version="3.9.0")
with shared.kafka() as kafka:
    shared.write(kafka.bootstrap, …)
    seen = shared.look(kafka.bootstrap)
    kafka.stop()
shared.adopt()
with shared.ours() as broker:
    assert shared.look(broker.bootstrap) == seen
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.records.batch import iter_batches
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.scripted_workload import BEGIN
from tests.support.wire_client import WireClient

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
}
TOPICS = {
    "plain": (2, {"retention.ms": "-1", "segment.bytes": "1048576", "index.interval.bytes": "300"}),
    "transacted": (1, {"retention.ms": "-1"}),
    "raw": (1, {"retention.ms": "-1"}),
}
GROUP = "readers"
QUIET = {"log_level": 0}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int | None]


@dataclass
class View:
    """Everything that a client can see of the topics."""

    records: dict[str, list[Row]] = field(default_factory=dict)
    """(offset, timestamp, key, value, headers, leader epoch) by `topic-partition`."""
    committed: dict[str, list[int]] = field(default_factory=dict)
    """Offsets that a read_committed consumer gets."""
    watermarks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """(first offset, end for read_uncommitted, end for read_committed)."""
    aborted: list[tuple[int, int]] = field(default_factory=list)
    """(producer id, first offset) of aborted transactions in `transacted`."""
    group: dict[str, int] = field(default_factory=dict)
    """Offsets committed by the group."""


class SharedDirectory:
    """The directory, and the brokers that serve it in turn."""

    def __init__(self, root: Path, version: str) -> None:
        self.root = root
        self.log_dir = root / "kafka-logs"
        self.version = version

    def kafka(self) -> ApacheKafka:
        """Return Apache Kafka on the directory, not started."""
        return ApacheKafka(
            self.root, SETTINGS, version=self.version, heap="512m", java_options=SHORT_LIVED
        )

    def ours(self) -> BrokerProcess:
        """Return this broker on the directory, not started."""
        return BrokerProcess(self.root, {**SETTINGS, "default.replication.factor": "1"})

    def adopt(self, *options: str) -> dict[str, str]:
        """Run `pykafkalog adopt`; return the action by topic."""
        properties = self.root / "adopt.properties"
        properties.write_text(f"log.dirs={self.log_dir}\nbroker.id=1\n")
        result = pykafkalog("adopt", "--json", str(properties), *options)
        assert result.returncode == 0, result.stderr
        summary = json.loads(result.stdout)
        return {topic["name"]: topic["action"] for topic in summary["topics"]}

    def partition_dirs(self) -> list[Path]:
        """Return the partition directories of the test's topics."""
        return [self.log_dir / name for name in partitions()]


def partitions() -> list[str]:
    """Return `topic-partition` of every partition of the test's topics."""
    return [f"{name}-{index}" for name, (count, _) in TOPICS.items() for index in range(count)]


def make_topics(bootstrap: str) -> None:
    """Create the topics of the test."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    wishes = [NewTopic(name, count, 1, config=own) for name, (count, own) in TOPICS.items()]
    for future in admin.create_topics(wishes).values():
        future.result(30)


def write(bootstrap: str, mark: str, count: int = 300) -> None:
    """Write records of every codec with keys, headers and fixed times, by idempotent producers."""
    for number, codec in enumerate(CODECS):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "batch.num.messages": 20,
                "linger.ms": 20,
                **QUIET,
            }
        )
        for index in range(count):
            producer.produce(
                "plain",
                key=None if index % 5 == 0 else b"%s-%d" % (mark.encode(), index),
                value=None if index % 7 == 0 else f"{mark} {codec} {index} ".encode() * 30,
                headers=[("mark", mark.encode()), ("null", None)] if index % 3 == 0 else None,
                partition=index % 2,
                timestamp=BEGIN + number * 1000 + index,
            )
        assert producer.flush(30) == 0


def transact(bootstrap: str, mark: str, *, leave_open: bool = False) -> list[Producer]:
    """Write transactions, every second one aborted; with `leave_open` the last one stays open.

    If the transactional id has an open one, from before a change of brokers, that is aborted first.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"id-{mark}", **QUIET})
    producer.init_transactions(30)
    for turn in range(5):
        producer.begin_transaction()
        for index in range(8):
            producer.produce(
                "transacted", value=f"{mark} {turn} {index}", timestamp=BEGIN + turn * 10 + index
            )
        assert producer.flush(30) == 0
        if turn == 4 and leave_open:
            return [producer]  # the transaction stays open while the caller keeps the producer
        (producer.abort_transaction if turn % 2 else producer.commit_transaction)(30)
    return []


def commit_some(bootstrap: str, offsets: dict[str, int]) -> None:
    """Commit offsets of the group, as a consumer without members does."""
    consumer = _consumer(bootstrap)
    wanted = [_topic_partition(name, offset) for name, offset in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def consume_in_group(bootstrap: str, count: int) -> None:
    """Join the group, read `count` records and commit, which stores offsets and group metadata."""
    consumer = _consumer(bootstrap, **{"auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    deadline, seen = time.monotonic() + 30, 0
    while seen < count:
        assert time.monotonic() < deadline, f"{seen} of {count} records"
        seen += len(consumer.consume(min(50, count - seen), 1.0))
    consumer.commit(asynchronous=False)
    consumer.close()


def wait_until_led(bootstrap: str) -> None:
    """Apache Kafka answers for a while after its start that it does not lead its partitions."""
    reader, deadline = _consumer(bootstrap), time.monotonic() + 30
    for name in partitions():
        while True:
            try:
                reader.get_watermark_offsets(_topic_partition(name), 20)
                break
            except KafkaException as error:
                not_led = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
                if not not_led or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    reader.close()


def look(bootstrap: str, port: int) -> View:
    """Return everything that a client can see."""
    view = View()
    reader = _consumer(bootstrap, **{"isolation.level": "read_uncommitted"})
    careful = _consumer(bootstrap, **{"isolation.level": "read_committed"})
    for name in partitions():
        low, high = reader.get_watermark_offsets(_topic_partition(name), 20)
        stable = careful.get_watermark_offsets(_topic_partition(name), 20)[1]
        view.watermarks[name] = (low, high, stable)
        view.records[name] = list(_rows(reader, name))
    view.committed["transacted-0"] = [row[0] for row in _rows(careful, "transacted-0")]
    known = reader.committed([_topic_partition(name) for name in partitions()], 30)
    view.group = {f"{tp.topic}-{tp.partition}": tp.offset for tp in known if tp.offset >= 0}
    reader.close()
    careful.close()
    view.aborted = aborted_transactions(port)
    return view


def aborted_transactions(port: int) -> list[tuple[int, int]]:
    """Return the aborted transactions in read_committed fetches of the whole `transacted-0`."""
    aborted: set[tuple[int, int]] = set()
    offset = 0
    with WireClient(port, timeout_s=20) as client:
        while True:
            answer = client.call(ApiKey.FETCH, 11, _fetch(offset)).responses[0].partitions[0]
            assert answer.error_code == 0
            headers = [header for _, header in iter_batches(answer.records or b"")]
            if not headers:
                return sorted(aborted)
            aborted |= {(t.producer_id, t.first_offset) for t in answer.aborted_transactions or ()}
            offset = headers[-1].next_offset


def _fetch(offset: int) -> Any:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 24)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=10,
        min_bytes=0,
        max_bytes=1 << 24,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic="transacted", partitions=[partition])],
    )


def new_producer_id(port: int) -> int:
    """Return a new producer id from the broker."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    deadline = time.monotonic() + 20
    with WireClient(port, timeout_s=20) as client:
        while True:
            answer = client.call(ApiKey.INIT_PRODUCER_ID, 4, request)
            if answer.error_code == 0:
                return int(answer.producer_id)
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)


def _rows(consumer: Consumer, name: str) -> Iterator[Row]:
    """Yield all records of a partition up to its end for this consumer."""
    consumer.assign([_topic_partition(name, 0)])
    deadline = time.monotonic() + 30
    ended = False
    while not ended:
        assert time.monotonic() < deadline, f"no end of {name}"
        for message in consumer.consume(500, 0.05):
            if message.error() is not None:
                if message.error().name() != "_PARTITION_EOF":
                    raise KafkaException(message.error())
                ended = True
                continue
            headers: list[Any] = message.headers() or []
            yield (
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                tuple(headers),
                message.leader_epoch(),
            )
    consumer.unassign()


def _consumer(bootstrap: str, **more: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            **QUIET,
            **more,
        }
    )


def _topic_partition(name: str, offset: int = -1001) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return TopicPartition(topic, int(index), offset)
