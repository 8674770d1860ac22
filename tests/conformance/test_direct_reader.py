"""`storage.reader` reads a directory that Apache Kafka uses as Kafka's consumers read it."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.types import TopicPartition
from storage.reader.scan import IsolationLevel, ScanRequest, plan
from tests.support.apache_kafka import ApacheKafka
from tests.support.kafka_jars import SHORT_LIVED
from tests.support.scanning import ScannedRow, scanned
from tests.support.waiting import wait_until

pytestmark = pytest.mark.conformance

SETTINGS = {
    "replica.high.watermark.checkpoint.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "100",
}
SMALL = {"segment.bytes": "1048576", "retention.ms": "-1"}
PATIENCE_S = 90
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def consumed(bootstrap: str, topic: str, end: int, isolation: str) -> list[ScannedRow]:
    """Return the records that a consumer gets up to the end of the partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([ClientPartition(topic, 0, 0)])
    rows: list[ScannedRow] = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error():
            consumer.close()
            return rows
        kind, stamp = message.timestamp()
        headers = tuple((name, value) for name, value in message.headers() or ())
        rows.append(
            ScannedRow(
                message.key(), message.value(), topic, 0, message.offset(), stamp, kind - 1, headers
            )
        )


def test_a_directory_of_apache_kafka(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, SETTINGS, java_options=SHORT_LIVED) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

        def create(name: str, **config: str) -> None:
            admin.create_topics([NewTopic(name, 1, config={**SMALL, **config})])[name].result(60)

        ends = {}
        for codec in CODECS:
            create(codec)
            producer = Producer(
                {"bootstrap.servers": kafka.bootstrap, "compression.type": codec, "linger.ms": 20}
            )
            for number in range(3000):
                producer.produce(
                    codec,
                    key=None if number % 7 == 0 else f"k{number}",
                    value=None if number % 11 == 0 else f"{number:04}-ü".encode() * (number % 300),
                    headers=[("h", b"1"), ("h", None)][: number % 3],
                    timestamp=1_700_000_000_000 + number * 1000 - number % 5 * 3000,
                )
                if number % 100 == 0:
                    producer.flush()
            assert producer.flush(60) == 0
            ends[codec] = 3000
        create("transactions")
        transactional = Producer(
            {"bootstrap.servers": kafka.bootstrap, "transactional.id": "t", "linger.ms": 0}
        )
        transactional.init_transactions(60)
        for number in range(12):
            transactional.begin_transaction()
            for part in range(3):
                transactional.produce("transactions", f"{number}-{part}")
            assert transactional.flush(60) == 0
            if number % 3 == 1:
                transactional.abort_transaction(60)
            else:
                transactional.commit_transaction(60)
        ends["transactions"] = 48
        create("compacted", **{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for number in range(20_000):
            producer.produce("compacted", key=f"k{number % 90}", value=f"{number:08}" * 20)
            if number % 1000 == 0:
                producer.flush()
        assert producer.flush(60) == 0
        ends["compacted"] = 20_000

        def request(topic: str, isolation: str = "read_uncommitted") -> ScanRequest:
            return ScanRequest(
                directories=(str(kafka.log_dir),),
                topics=(topic,),
                isolation=IsolationLevel(isolation),
            )

        def is_written(topic: str) -> bool:
            (found,) = plan(request(topic)).partitions
            return found.end_offset == ends[topic]

        for topic in ends:
            wait_until(lambda topic=topic: is_written(topic), PATIENCE_S)  # type: ignore[misc]
        cleaned = kafka.log_dir / "cleaner-offset-checkpoint"
        wait_until(lambda: cleaned.exists() and "compacted" in cleaned.read_text(), PATIENCE_S)
        wait_until(lambda: not [*(kafka.log_dir / "compacted-0").glob("*.deleted")], PATIENCE_S)
        expected = {}
        for topic, end in ends.items():
            for isolation in ("read_uncommitted", "read_committed"):
                rows = consumed(kafka.bootstrap, topic, end, isolation)
                expected[topic, isolation] = rows
                assert scanned(request(topic, isolation)) == rows  # it is in use
        assert len(expected["transactions", "read_committed"]) == 24
        assert len(expected["compacted", "read_uncommitted"]) < 19_000
    for (topic, isolation), rows in expected.items():
        assert scanned(request(topic, isolation)) == rows
        (found,) = plan(request(topic, isolation)).partitions
        assert found.topic_partition == TopicPartition(topic, 0)
