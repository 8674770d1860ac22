"""kill -9 again and again under load: nothing acknowledged is lost or doubled, order is kept.

The process dies, the page cache does not: the test is about files that the broker left in the
middle of any work, and about clients that retry over a restart. An idempotent producer writes
numbers to several partitions of small segments, another client commits offsets; the broker is
killed at random moments and started again on the same directory and port.

KILL_ROUNDS sets the number of kills (25), KILL_SEED the moments.
"""

import os
import random
import threading
import time
from dataclasses import dataclass, field

import pytest

from tests.support.broker_process import BrokerProcess

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = [pytest.mark.crash, pytest.mark.integration]

TOPIC = "numbers"
PARTITIONS = 4
KEYS = 5
MESSAGES_PER_SECOND = 1500
BROKER = {
    "num.partitions": str(PARTITIONS),
    "offsets.topic.num.partitions": "3",
    "offsets.topic.segment.bytes": "65536",
    "log.initial.task.delay.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "log.retention.check.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}


@dataclass
class Acknowledged:
    """The promises of the broker."""

    records: dict[int, dict[int, int]] = field(
        default_factory=lambda: {partition: {} for partition in range(PARTITIONS)}
    )
    """Partition -> number -> offset."""
    committed: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


class NumberProducer(threading.Thread):
    """Sends 0, 1, 2, … to each partition until `stopping` is set."""

    def __init__(self, bootstrap: str, told: Acknowledged) -> None:
        super().__init__(name="numbers", daemon=True)
        self.told = told
        self.stopping = threading.Event()
        self.sent = 0
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,  # that the broker is down is not news
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 3,
                "batch.num.messages": 40,
                "message.timeout.ms": 120_000,
                "socket.timeout.ms": 10_000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "error_cb": self._error,
            }
        )

    def _error(self, error) -> None:
        if error.fatal():
            self.told.errors.append(f"fatal: {error}")

    def _delivered(self, error, message) -> None:
        if error is not None:
            self.told.errors.append(f"delivery: {error}")
            return
        numbers = self.told.records[message.partition()]
        numbers[int(message.value().split(b":")[0])] = message.offset()

    def run(self) -> None:
        number = 0
        begin = time.monotonic()
        while not self.stopping.is_set():
            for partition in range(PARTITIONS):
                value = b"%d:" % number + b"x" * (number % 90)
                key = b"key-%d" % (number % KEYS)
                while True:
                    try:
                        self.producer.produce(
                            TOPIC, value, key, partition=partition, on_delivery=self._delivered
                        )
                        break
                    except BufferError:
                        self.producer.poll(0.05)
                self.sent += 1
            number += 1
            ahead = self.sent / MESSAGES_PER_SECOND - (time.monotonic() - begin)
            self.producer.poll(max(0.0, min(ahead, 0.05)))
        self.producer.flush(60)


class Committer(threading.Thread):
    """Commits 1, 2, 3, …, each for the next partition; remembers the acknowledged ones."""

    def __init__(self, bootstrap: str, told: Acknowledged) -> None:
        super().__init__(name="committer", daemon=True)
        self.told = told
        self.stopping = threading.Event()
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,  # that the broker is down is not news
                "group.id": "kill-loop",
                "enable.auto.commit": False,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "socket.timeout.ms": 5_000,
            }
        )

    def run(self) -> None:
        offset = 0
        while not self.stopping.is_set():
            offset += 1
            place = confluent_kafka.TopicPartition(TOPIC, offset % PARTITIONS, offset)
            try:
                done = self.consumer.commit(offsets=[place], asynchronous=False)
            except confluent_kafka.KafkaException:
                time.sleep(0.02)  # the broker is down; that commit may or may not have happened
                continue
            if done[0].error is None:
                self.told.committed[offset % PARTITIONS] = offset
            time.sleep(0.005)
        self.consumer.close()


def read_back(bootstrap: str) -> dict[int, list[tuple[int, bytes, bytes]]]:
    """Every record: partition -> [(offset, key, value)]."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    found: dict[int, list[tuple[int, bytes, bytes]]] = {p: [] for p in range(PARTITIONS)}
    try:
        ends = {}
        for partition in range(PARTITIONS):
            place = confluent_kafka.TopicPartition(TOPIC, partition)
            ends[partition] = consumer.get_watermark_offsets(place, timeout=20)[1]
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, p, 0) for p in range(PARTITIONS)])
        left = sum(ends.values())
        deadline = time.monotonic() + 120
        while left > 0 and time.monotonic() < deadline:
            for message in consumer.consume(5000, timeout=1):
                assert message.error() is None, message.error()
                found[message.partition()].append(
                    (message.offset(), message.key(), message.value())
                )
                left -= 1
        assert left == 0, f"{left} of {ends} were not delivered"
    finally:
        consumer.close()
    return found


def committed_offsets(bootstrap: str) -> dict[int, int]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "kill-loop", "enable.auto.commit": False}
    )
    try:
        places = consumer.committed(
            [confluent_kafka.TopicPartition(TOPIC, p) for p in range(PARTITIONS)], timeout=30
        )
        return {place.partition: place.offset for place in places}
    finally:
        consumer.close()


def test_no_acknowledged_record_or_commit_is_lost_or_doubled(tmp_path, capsys):
    rounds = int(os.environ.get("KILL_ROUNDS", "25"))
    seed = int(os.environ.get("KILL_SEED") or random.randrange(1_000_000))
    chance = random.Random(seed)
    told = Acknowledged()
    broker = BrokerProcess(tmp_path, BROKER)
    begin = time.monotonic()
    starts: list[float] = []
    with broker:
        create_topic(broker.bootstrap)
        producer = NumberProducer(broker.bootstrap, told)
        committer = Committer(broker.bootstrap, told)
        producer.start()
        committer.start()
        for number in range(rounds):
            time.sleep(chance.choice((chance.uniform(0, 0.2), chance.uniform(0, 1.5))))
            broker.kill()
            down = time.monotonic()
            broker.start()
            starts.append(time.monotonic() - down)
            assert not told.errors, f"KILL_SEED={seed} round {number}: {told.errors[:3]}"
        producer.stopping.set()
        committer.stopping.set()
        producer.join(90)
        committer.join(30)
        assert not told.errors, f"KILL_SEED={seed}: {told.errors[:3]}"
        found = read_back(broker.bootstrap)
        committed = committed_offsets(broker.bootstrap)
    compare(told, found, committed, seed)
    records = sum(map(len, told.records.values()))
    segments = len(list(broker.log_dir.glob(f"{TOPIC}-*/*.log")))
    with capsys.disabled():
        print(
            f"\n{rounds} kills in {time.monotonic() - begin:.0f} s (KILL_SEED={seed}): {records} "
            f"acknowledged records in {segments} segments, {max(told.committed.values())} commits, "
            f"none lost or doubled; a start took {sum(starts) / len(starts):.2f} s, at most "
            f"{max(starts):.2f} s"
        )


def create_topic(bootstrap: str) -> None:
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    topic = admin.NewTopic(TOPIC, PARTITIONS, 1, config={"segment.bytes": str(16 * 1024)})
    client.create_topics([topic])[TOPIC].result(20)


def compare(told, found, committed, seed: int) -> None:
    for partition, records in found.items():
        where = f"KILL_SEED={seed} partition {partition}"
        numbers = [int(value.split(b":")[0]) for _, _, value in records]
        assert [offset for offset, _, _ in records] == list(range(len(records))), where
        # One producer, in order: each number once, rising; so order per key is kept as well.
        assert numbers == sorted(set(numbers)), (where, _first_disorder(numbers))
        at = {number: offset for number, (offset, _, _) in zip(numbers, records, strict=True)}
        lost = {n: o for n, o in told.records[partition].items() if at.get(n) != o}
        assert not lost, (where, sorted(lost.items())[:5])
        assert all(
            key == b"key-%d" % (n % KEYS) for n, (_, key, _) in zip(numbers, records, strict=True)
        )
    for partition, offset in told.committed.items():
        assert committed[partition] >= offset, (seed, partition, offset, committed)


def _first_disorder(numbers: list[int]) -> tuple[int, list[int]]:
    for at in range(1, len(numbers)):
        if numbers[at] <= numbers[at - 1]:
            return at, numbers[max(0, at - 3) : at + 3]
    return -1, []
