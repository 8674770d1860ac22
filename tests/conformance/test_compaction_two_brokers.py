"""Apache Kafka and this broker compact one topic in turn, each from where the other stopped.

Kafka 4.x accepts no segments below 1 MiB, so every turn writes some megabytes. Kept must be: the
latest value of every key, offsets and order, what a read_committed consumer sees, and the cleaner's
checkpoint (S-CMP-14), so that neither begins again at the start.
"""

import random
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from storage.reader import LogDirView
from tests.conformance.test_one_directory_two_brokers import complaints, dump
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import KAFKA_VERSION, ROOT, SHORT_LIVED
from tests.support.shared_directory import SharedDirectory
from tests.support.waiting import wait_until

pytestmark = pytest.mark.conformance

TOPIC = "compacted"
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "100",
}
CLEANER = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
KAFKA_BEGAN = rf"Building offset map for log {TOPIC}-0 for .* in offset range \[(\d+), "
OURS_BEGAN = rf"cleaned log {TOPIC}-0 \(dirty section = \[(\d+), "
KEYS = 300
QUIET = {"log_level": 0}

Broker = ApacheKafka | BrokerProcess
Row = tuple[int, bytes, bytes | None]


@dataclass
class Writer:
    """Writes in each turn, and knows what must be there afterwards."""

    rng: random.Random = field(default_factory=lambda: random.Random(1))
    latest: dict[bytes, bytes | None] = field(default_factory=dict)
    """Value by key; None if the key was deleted."""

    def write(self, broker: Broker, mark: str) -> None:
        """Write four megabytes, then transactions of which every second one is aborted."""
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, **QUIET}
        )
        for number in range(4000):
            self._produce(producer, mark, number, committed=True)
        assert producer.flush(30) == 0
        transactional = self._owner(broker)
        for turn in range(10):
            keys = [self._key() for _ in range(20)]
            try:
                self._transact(transactional, f"{mark} {turn}", keys, committed=turn % 2 == 0)
            except KafkaException:
                # A busy Kafka 4.3.1 now and then refuses librdkafka's EndTxn (INVALID_TXN_STATE).
                # The same keys again, so that their outcome does not matter.
                if not isinstance(broker, ApacheKafka):
                    raise
                transactional = self._owner(broker)
                self._transact(transactional, f"{mark} {turn}", keys, committed=turn % 2 == 0)

    def _owner(self, broker: Broker) -> Producer:
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "id", **QUIET}
        owner = Producer(settings)
        owner.init_transactions(30)
        return owner

    def _transact(self, owner: Producer, mark: str, keys: list[bytes], *, committed: bool) -> None:
        owner.begin_transaction()
        for number, key in enumerate(keys):
            self._produce(owner, mark, number, committed=committed, key=key)
        (owner.commit_transaction if committed else owner.abort_transaction)(30)

    def _key(self) -> bytes:
        return b"key-%d" % self.rng.randrange(KEYS)

    def _produce(
        self, producer: Producer, mark: str, number: int, *, committed: bool, key: bytes = b""
    ) -> None:
        key = key or self._key()
        value = None
        if self.rng.random() > 0.1:
            value = f"{mark} {number} ".encode() + self.rng.randbytes(1000)
        producer.produce(TOPIC, key=key, value=value, partition=0)
        producer.poll(0)
        if committed:
            self.latest[key] = value

    @property
    def living(self) -> dict[bytes, bytes]:
        return {key: value for key, value in self.latest.items() if value is not None}


def read(broker: Broker, isolation: str) -> list[Row]:
    """Read everything from the first offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    rows: list[Row] = []
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                rows.append((message.offset(), message.key(), message.value()))
            elif message.error().name() == "_PARTITION_EOF":
                consumer.close()
                return rows
            else:
                raise KafkaException(message.error())


def state_of(rows: list[Row]) -> dict[bytes, bytes]:
    last = {key: value for _, key, value in rows}
    return {key: value for key, value in last.items() if value is not None}


def checkpoint(log_dir: Path) -> int:
    """Return the offset up to which the topic was cleaned; -1 before its first cleaning."""
    offsets = LogDirView(log_dir).offsets("cleaner-offset-checkpoint")
    found = {(tp.topic, tp.partition): offset for tp, offset in offsets.items()}
    return found.get((TOPIC, 0), -1)


def active_base(log_dir: Path) -> int:
    return max(int(path.stem) for path in (log_dir / f"{TOPIC}-0").glob("*.log"))


def wait_until_clean(log_dir: Path) -> None:
    """Wait until everything below the active segment is cleaned."""
    base = active_base(log_dir)
    wait_until(lambda: checkpoint(log_dir) >= base, 60)


def one_turn(broker: Broker, writer: Writer, mark: str, log_dir: Path) -> list[Row]:
    """Write, wait for the cleaner, and compare."""
    before = checkpoint(log_dir)
    writer.write(broker, mark)
    wait_until_clean(log_dir)
    assert checkpoint(log_dir) > before
    committed = read(broker, "read_committed")
    assert state_of(committed) == writer.living
    everything = read(broker, "read_uncommitted")
    offsets = [offset for offset, _, _ in everything]
    assert offsets == sorted(set(offsets))
    # The cleaned part holds each key at most once.
    below = checkpoint(log_dir)
    clean = [key for offset, key, _ in committed if offset < below]
    assert len(clean) == len(set(clean))
    return committed


def kafka_on(shared: SharedDirectory) -> ApacheKafka:
    """Return an Apache Kafka whose cleaner runs often and logs what it does."""
    quiet = (ROOT / "tests/support/log4j2.properties").read_text()
    loud = shared.root / "log4j2.properties"
    loud.write_text(quiet.replace("rootLogger.level = WARN", "rootLogger.level = INFO"))
    kafka = shared.kafka()
    kafka.settings |= CLEANER
    kafka.java_options = (*SHORT_LIVED, f"-Dlog4j2.configurationFile={loud}")
    return kafka


def first_dirty(output: Path, begin: int, pattern: str) -> int:
    """Return where the first cleaning began that the output names after `begin` bytes."""
    told = output.read_bytes()[begin:].decode(errors="replace")
    match = re.search(pattern, told)
    assert match is not None, told[-2000:]
    return int(match[1])


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_s_cmp_14_a_compacted_topic_goes_to_and_fro(tmp_path: Path) -> None:
    shared = SharedDirectory(tmp_path, KAFKA_VERSION)
    writer = Writer()
    with kafka_on(shared) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, **QUIET})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=CONFIG)])[TOPIC].result(30)
        one_turn(kafka, writer, "kafka 0", shared.log_dir)
        kafka.stop()
    by_kafka = checkpoint(shared.log_dir)
    assert shared.adopt()[TOPIC] == "adopted"
    for turn in range(2):
        ours = BrokerProcess(tmp_path, CLEANER)
        told = size_of(ours.output_file)
        with ours:
            assert state_of(read(ours, "read_committed")) == writer.living
            one_turn(ours, writer, f"ours {turn}", shared.log_dir)
            ours.stop()
        assert first_dirty(ours.output_file, told, OURS_BEGAN) == by_kafka
        by_us = checkpoint(shared.log_dir)
        assert complaints_of(shared) == []
        told = size_of(tmp_path / "kafka.out")
        with kafka_on(shared) as kafka:
            assert state_of(read(kafka, "read_committed")) == writer.living
            one_turn(kafka, writer, f"kafka {turn + 1}", shared.log_dir)
            kafka.stop()
        assert first_dirty(tmp_path / "kafka.out", told, KAFKA_BEGAN) == by_us
        by_kafka = checkpoint(shared.log_dir)
        assert shared.adopt()[TOPIC] == "known already"


def complaints_of(shared: SharedDirectory) -> list[str]:
    """Return the faults that Kafka's tool finds, except times of batches that are kept empty."""
    directories = [shared.log_dir / f"{TOPIC}-0"]
    said = dump(directories, "--deep-iteration", "--verify-index-only")
    said += dump(directories, "--index-sanity-check", kinds=(".index", ".timeindex"))
    return [line for line in complaints(said) if "timestamp mismatch" not in line]
