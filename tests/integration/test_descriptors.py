"""Few descriptors, and none at all: connections are refused, files are not, nothing is lost."""

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from tests.support.broker_process import BrokerProcess
from tests.support.waiting import wait_until

LIMIT = 256
PARTITIONS = 30
SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "log.segment.bytes": "20000",
    "log.initial.task.delay.ms": "300",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "log.flush.scheduler.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
}
UNDER_THE_LIMIT = ("prlimit", f"--nofile={LIMIT // 2}:{LIMIT}")

Sent = set[tuple[int, int]]


def open_files(broker: BrokerProcess) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


@contextmanager
def crowd(broker: BrokerProcess, size: int) -> Iterator[None]:
    """Clients that connect and say nothing."""
    sockets = [socket.create_connection(("127.0.0.1", broker.port), 5) for _ in range(size)]
    try:
        yield
    finally:
        for one in sockets:
            one.close()


def produce(producer: KafkaProducer, rounds: int) -> Sent:
    """Send records to each partition; return (partition, offset) of the acknowledged ones."""
    sent = set()
    for _ in range(rounds):
        futures = [
            producer.send("t", os.urandom(1000), partition=index % PARTITIONS)
            for index in range(PARTITIONS * 8)
        ]
        sent |= {(told.partition, told.offset) for told in (one.get(30) for one in futures)}
    return sent


def consumed(broker: BrokerProcess) -> Sent:
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=3000,
    )
    found = {(record.partition, record.offset) for record in consumer}
    consumer.close()
    return found


def created(admin: KafkaAdminClient, topic: NewTopic) -> None:
    """Create a topic, which may fail while a background task has the last descriptors."""
    for left in range(20, -1, -1):
        try:
            admin.create_topics([topic])
            return
        except KafkaError:
            if not left:
                raise
            time.sleep(0.3)


def checkpointed(broker: BrokerProcess) -> list[int]:
    """Return the times at which background tasks have written their checkpoints."""
    return [path.stat().st_mtime_ns for path in sorted(broker.log_dir.glob("*-checkpoint"))]


def healthy(broker: BrokerProcess) -> None:
    output = broker.output(1 << 20)
    assert broker.running
    assert "Stopping serving logs in dir" not in output
    assert "Traceback" not in output


def test_a_crowd_is_refused_and_files_are_opened_as_ever(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, SETTINGS, wrapper=UNDER_THE_LIMIT) as broker:
        assert f"{LIMIT} may be open (the soft limit was {LIMIT // 2})" in broker.output()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", retries=10)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("first", 1, 1)])
        sent = produce(producer, 1)
        with crowd(broker, 400):
            sent |= produce(producer, 8)
            for number in range(30):
                admin.create_topics([NewTopic(f"t{number}", 4, 1)])
                producer.send(f"t{number}", b"x", partition=3).get(30)
            assert open_files(broker) < LIMIT - 8
        assert "the limit of open files is reached" in broker.output(1 << 20)
        healthy(broker)
        assert sent <= consumed(broker)
        producer.close()
        admin.close()
        broker.kill()
        broker.start()
        assert sent <= consumed(broker)
        healthy(broker)


def test_work_that_failed_without_descriptors_is_tried_again(tmp_path: Path) -> None:
    """The test lowers the limit of the running broker, so whatever that opens may fail."""
    with BrokerProcess(tmp_path, SETTINGS) as broker:
        once = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", retries=0)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        admin.create_topics([NewTopic("wide", 60, 1)])
        sent = produce(once, 1)
        once.send("wide", b"known", partition=0).get(30)
        before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (open_files(broker) - 4, before[1]))
        failed = 0
        for partition in range(60):
            try:
                once.send("wide", b"x", partition=partition).get(30)
            except KafkaError:
                failed += 1
        assert 0 < failed < 30  # what is refused makes room for what comes next
        created(admin, NewTopic("made", 4, 1))
        told, kept = len(broker.output(1 << 20)), checkpointed(broker)
        # Background tasks fail and say so, or get what the refused clients gave back.
        wait_until(lambda: len(broker.output(1 << 20)) > told or checkpointed(broker) != kept, 20)
        healthy(broker)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)
        for partition in range(60):
            once.send("wide", b"x", partition=partition).get(30)
        sent |= produce(once, 5)
        once.close()
        admin.close()
        assert sent <= consumed(broker)
        healthy(broker)
