"""Kafka's DumpLogSegments prints the same of Apache Kafka's files of transactions and of ours.

Both brokers get the same requests, one by one, so both must write the same records. The tool's
lines of `__transaction_state`, `.log` with its markers, `.txnindex` and the producer snapshots must
be equal except for times, checksums (they cover times) and producer ids (these are numbered in the
order in which they appear).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.coordinator.transaction.records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from protocol.records.batch import iter_batches
from protocol.records.record import iter_records
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import SHORT_LIVED, java
from tests.support.raw_transactions import RawTransaction

pytestmark = pytest.mark.conformance

Broker = ApacheKafka | BrokerProcess
BEGIN = 1_700_000_000_000
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TIMES = re.compile(r"((?:CreateTime|crc|imestamp|TimestampMs\"?):) ?(?!-1\b)\d+")
PRODUCER = re.compile(r"((?:roducerId|ProducerId)\"?: ?)(\d+)")


def use_transactions(broker: Broker, version: int) -> None:
    """Commit, abort, commit offsets, fence an open transaction; leave one open."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    wish = NewTopic("t", 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([wish])["t"].result(30)
    port = broker.port
    first = RawTransaction("first", version=version)
    first.begin(port)
    first.send(port, "t", 0, b"a", b"b", at=BEGIN)
    first.send(port, "t", 1, b"c", at=BEGIN + 1)
    first.send_offset(port, "group", "t", 0, 5)
    first.end(port, commit=True)
    assert first.wait_at_rest(port) == "CompleteCommit"
    first.send(port, "t", 0, b"d", at=BEGIN + 2)
    first.send(port, "t", 0, b"e", at=BEGIN + 3)
    first.end(port, commit=False)
    assert first.wait_at_rest(port) == "CompleteAbort"
    first.begin(port)  # a new owner without an open transaction …
    first.send(port, "t", 1, b"f", at=BEGIN + 4)
    heir = RawTransaction("first", version=version)
    heir.begin(port)  # … and with one, which it aborts
    heir.send(port, "t", 1, b"g", at=BEGIN + 5)
    heir.end(port, commit=True)
    assert heir.wait_at_rest(port) == "CompleteCommit"
    other = RawTransaction("other", version=version, timeout_ms=600_000)
    other.begin(port)
    other.send(port, "t", 0, b"h", at=BEGIN + 6)


def files_of(log_dir: Path) -> list[Path]:
    names = ("__transaction_state-0", "t-0", "t-1")
    kinds = (".log", ".txnindex", ".snapshot")
    return [
        path
        for name in names
        for path in sorted((log_dir / name).iterdir())
        if path.suffix in kinds and path.stat().st_size
    ]


def told(log_dir: Path) -> list[str]:
    """Return what Kafka's tool prints of the files, without what must differ."""
    lines: list[str] = []
    for files, option in (
        ([f for f in files_of(log_dir) if "__tr" in str(f)], "--transaction-log-decoder"),
        ([f for f in files_of(log_dir) if "__tr" not in str(f)], "--print-data-log"),
    ):
        names = ",".join(map(str, files))
        lines += java(DUMP, "--deep-iteration", option, "--files", names).stdout.splitlines()
    producers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return found[1] + producers.setdefault(found[2], f"#{len(producers)}")

    return [
        PRODUCER.sub(number, TIMES.sub(r"\1 …", in_order(line.replace(str(log_dir), ""))))
        for line in lines
    ]


def in_order(line: str) -> str:
    """Return a line with a transaction's partitions sorted: Kafka's order is a hash table's."""
    head, payload, value = line.partition(" payload: ")
    if not payload or not value.startswith("{"):
        return line
    found = json.loads(value)
    topics = found["data"]["transactionPartitions"]
    if topics is not None:
        topics.sort(key=lambda topic: topic["topic"])
        for topic in topics:
            topic["partitionIds"].sort()
    return head + payload + json.dumps(found, separators=(",", ":"))


def state_records(log_dir: Path) -> Iterator[tuple[bytes, bytes]]:
    data = (log_dir / "__transaction_state-0/00000000000000000000.log").read_bytes()
    for position, _ in iter_batches(data):
        for record in iter_records(data, position):
            assert record.key is not None and record.value is not None
            yield bytes(record.key), bytes(record.value)


@pytest.mark.parametrize("version", [1, 2])
def test_s_fmt_1_both_brokers_write_the_same_of_transactions(tmp_path: Path, version: int) -> None:
    ours = BrokerProcess(tmp_path / "ours", SETTINGS)
    theirs = ApacheKafka(tmp_path / "kafka", SETTINGS, heap="512m", java_options=SHORT_LIVED)
    for broker in (ours, theirs):
        with broker:
            use_transactions(broker, version)
            broker.stop()
    mine, kafkas = told(ours.log_dir), told(theirs.log_dir)
    assert any('"transactionalId":"other"' in line for line in mine)
    assert any("endTxnMarker: ABORT" in line for line in mine)
    assert any("AbortedTxn" in line or "lastStableOffset" in line for line in mine)
    assert mine == kafkas


def test_s_fmt_2_what_kafka_writes_is_read_and_written_alike(tmp_path: Path) -> None:
    """The bytes are equal, except for values with several partitions, whose order is free."""
    kafka = ApacheKafka(tmp_path, SETTINGS, heap="512m", java_options=SHORT_LIVED)
    with kafka:
        use_transactions(kafka, version=2)
        kafka.stop()
    compared = 0
    for key, value in state_records(kafka.log_dir):
        transactional_id = decode_key(key)
        assert transactional_id is not None
        assert encode_key(transactional_id) == key
        found = decode_value(value)
        assert decode_value(encode_value(found)) == found
        assert len(encode_value(found)) == len(value)
        if len(found.partitions) < 2:
            assert encode_value(found) == value
            compared += 1
    assert compared >= 10
