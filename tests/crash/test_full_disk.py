"""A real full disk: a tmpfs of a few megabytes as one of two log directories, or as the only one.

Writing into a hole of a mapped index on a full file system kills a process (SIGBUS); writing
records fails half-way. Neither may be more than the loss of that directory (S-REC-11).

Needs the right to mount; skipped where there is none.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.cluster.disk import Disk, may_mount

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

pytestmark = [pytest.mark.crash, pytest.mark.integration]

STORAGE_ERROR = confluent_kafka.KafkaError.KAFKA_STORAGE_ERROR


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 8 MB."""
    if not may_mount():
        pytest.skip("cannot mount a tmpfs")
    with closing(Disk(tmp_path / "small", 8 << 20)) as disk:
        yield disk


def create(bootstrap: str, name: str, partitions: int, **config: str) -> None:
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    client.create_topics([admin.NewTopic(name, partitions, 1, config=settings)])[name].result(20)


def producer(bootstrap: str, **settings):
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "acks": "all",
            "retries": 0,  # the error itself is what we are after
            "message.timeout.ms": 20_000,
            "linger.ms": 0,
            **settings,
        }
    )


def send(client, topic: str, partition: int, value: bytes) -> tuple[int | None, int]:
    """Produce one record and wait: (error code or None, offset)."""
    told: list[tuple[int | None, int]] = []
    client.produce(
        topic,
        value,
        partition=partition,
        on_delivery=lambda error, message: told.append(
            (None if error is None else error.code(), message.offset())
        ),
    )
    client.flush(30)
    assert told, "no answer"
    return told[0]


def values_of(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0}
    )
    try:
        place = confluent_kafka.TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=20)
        consumer.assign([place])
        found: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(found) < end and time.monotonic() < deadline:
            for message in consumer.consume(1000, timeout=1):
                assert message.error() is None, message.error()
                found.append(message.value())
        return found
    finally:
        consumer.close()


def partition_in(log_dir: Path, topic: str) -> int:
    """The partition of `topic` that lies in `log_dir`."""
    (directory,) = log_dir.glob(f"{topic}-*")
    return int(directory.name.rsplit("-", 1)[1])


@pytest.mark.parametrize(
    ("size", "index_interval"),
    [(200_000, "4096"), (1, "0")],
    ids=["records fill the disk", "index entries fill the disk"],
)
def test_s_rec_11_a_full_disk_costs_its_directory_only(tmp_path, small_disk, size, index_interval):
    large = tmp_path / "large"
    broker = BrokerProcess(tmp_path, {"log.dirs": f"{large},{small_disk.path}"})
    with broker:
        create(broker.bootstrap, "t", 2, index_interval_bytes=index_interval)
        bad, good = partition_in(small_disk.path, "t"), partition_in(large, "t")
        client = producer(broker.bootstrap)
        kept = _fill(client, bad, size, small_disk.path)
        code, _ = send(client, "t", good, b"still served")
        assert code is None
        # For good, not only while it is full.
        assert send(producer(broker.bootstrap), "t", bad, b"x")[0] is not None
        assert values_of(broker.bootstrap, "t", good) == [b"still served"]
        create(broker.bootstrap, "later", 1)
        assert send(client, "later", 0, b"new topics go to the other one")[0] is None
        assert broker.running
        assert "Stopping serving logs in dir" in broker.output(1 << 20)
        assert "Traceback" not in broker.output(1 << 20)
        broker.stop()
        _grow(small_disk)
        broker.start()
        # All that was acknowledged is there again; at most the write that failed in addition.
        found = values_of(broker.bootstrap, "t", bad)
        assert [len(value) for value in found[: len(kept)]] == kept
        assert len(found) <= len(kept) + 1
        assert send(producer(broker.bootstrap), "t", bad, b"x")[0] is None


def _fill(client, partition: int, size: int, disk: Path) -> list[int]:
    """Sizes of acknowledged records, until one is refused for want of space."""
    if size == 1:
        # Leave room for little: index entries come with every small batch.
        filler = disk / "filler"
        filler.write_bytes(b"x" * (8 * 1024 * 1024 - 200 * 1024 - _used(disk)))
    kept: list[int] = []
    for number in range(20_000):
        value = b"v" * (size + number % 7)
        code, _ = send(client, "t", partition, value)
        if code is not None:
            assert code == STORAGE_ERROR, code
            return kept
        kept.append(len(value))
    raise AssertionError("the disk never became full")


def _used(disk: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in disk.rglob("*"))


def _grow(disk: Disk) -> None:
    disk.give_room()
    (disk.path / "filler").unlink(missing_ok=True)


def test_s_rec_11_without_a_directory_left_the_broker_ends(tmp_path, small_disk):
    broker = BrokerProcess(tmp_path, {"log.dirs": str(small_disk.path)})
    broker.start()
    try:
        create(broker.bootstrap, "t", 1)
        client = producer(broker.bootstrap)
        acknowledged = 0
        for _ in range(1000):
            code, _ = send(client, "t", 0, b"v" * 200_000)
            if code is not None:
                break
            acknowledged += 1
        assert acknowledged > 10
        assert broker.process is not None
        assert broker.process.wait(30) == 1, broker.output()
        assert "All log dirs have failed" in broker.output()
        _grow(small_disk)
        broker.start()
        assert len(values_of(broker.bootstrap, "t", 0)) in (acknowledged, acknowledged + 1)
        broker.stop()
    finally:
        broker.kill()
