"""`__consumer_offsets` is exchanged with Apache Kafka in both directions (S-FMT-1, S-FMT-2).

This broker reads what Kafka writes for groups and writes the same bytes; Kafka's own
`DumpLogSegments --offsets-decoder` reads what this broker writes.
"""

import json
import re
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.coordinator.group.data.records import GroupMetadataRecord, OffsetRecord
from broker.coordinator.group.data.serde import decode_record, encode_record
from protocol.records.batch import iter_batches
from protocol.records.record import Record, iter_records
from protocol.types import TopicPartition as Partition
from tests.support.apache_kafka import ApacheKafka
from tests.support.group_harness import GroupHarness
from tests.support.kafka_jars import SHORT_LIVED, java

pytestmark = pytest.mark.conformance


def records_of(segment: Path) -> list[Record]:
    data = segment.read_bytes()
    return [record for position, _ in iter_batches(data) for record in iter_records(data, position)]


def use_groups(bootstrap: str) -> None:
    """Use a consumer group, a static member and a simple consumer."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce("t", value=str(number))
    producer.flush(30)
    common = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    common["enable.auto.commit"] = False
    for group, more in (("dynamic", {}), ("static", {"group.instance.id": "one"})):
        consumer = Consumer({**common, "group.id": group, **more})
        consumer.subscribe(["t"])
        deadline = time.monotonic() + 30
        while consumer.poll(0.5) is None:
            assert time.monotonic() < deadline
        consumer.commit(asynchronous=False)
        consumer.close()
    simple = Consumer({**common, "group.id": "simple"})
    offset = TopicPartition("t", 0, 4, metadata="a place")
    simple.commit(offsets=[offset], asynchronous=False)
    simple.close()


def test_s_fmt_2_what_kafka_writes_is_read_and_written_alike(tmp_path: Path) -> None:
    kafka = ApacheKafka(
        tmp_path, {"group.initial.rebalance.delay.ms": "100"}, java_options=SHORT_LIVED
    )
    kafka.start()
    try:
        use_groups(kafka.bootstrap)
    finally:
        kafka.stop()
    groups = GroupHarness()
    seen = set()
    for directory in sorted(kafka.log_dir.glob("__consumer_offsets-*")):
        (segment,) = directory.glob("*.log")
        partition = Partition("__consumer_offsets", int(directory.name.rpartition("-")[2]))
        for record in records_of(segment):
            assert record.key is not None
            decoded = decode_record(record.key, record.value)
            assert decoded is not None
            assert encode_record(decoded) == (record.key, record.value)
            group = decoded.group_id if isinstance(decoded, GroupMetadataRecord) else decoded.key[0]
            assert groups.coordinator.partition_for(group) == partition.partition
            seen.add((group, type(decoded)))
            groups.shard(group).replay(decoded, record.offset)
    assert seen == {
        ("dynamic", GroupMetadataRecord),
        ("dynamic", OffsetRecord),
        ("static", GroupMetadataRecord),
        ("static", OffsetRecord),
        ("simple", OffsetRecord),
    }
    found = groups.coordinator.fetch_offset("simple")("t", 0)
    assert found is not None
    # confluent-kafka includes the NUL of its C string.
    assert (found.offset, found.metadata.rstrip("\0")) == (4, "a place")
    assert groups.group("static").static_members.keys() == {"one"}
    groups.check()


def test_s_fmt_1_kafka_reads_what_is_written_here(tmp_path: Path) -> None:
    groups = GroupHarness()
    generation, (member_id,) = groups.stable_group(instance="one")
    groups.commit(7, member_id=member_id, generation=generation, metadata="a place", leader_epoch=2)
    groups.commit(8, group="g", topic="old", member_id=member_id, generation=generation)
    groups.coordinator.on_topics_deleted(["old"])
    partition = Partition("__consumer_offsets", groups.coordinator.partition_for("g"))
    directory = tmp_path / str(partition)
    directory.mkdir()
    segment = directory / "00000000000000000000.log"
    segment.write_bytes(b"".join(groups.log.batches[partition]))
    dumped = java(
        "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(segment)
    ).stdout
    payloads = re.findall(r"key: (\{.*?\}) payload: (.*)", dumped)
    assert len(payloads) == len(list(groups.log.records(partition)))
    keys = [json.loads(key) for key, _ in payloads]
    assert keys[0] == {"type": "2", "data": {"group": "g"}}
    group = json.loads(payloads[1][1])
    assert group["version"] == "3"
    assert group["data"]["generation"] == generation
    assert group["data"]["members"][0]["groupInstanceId"] == "one"
    offset = json.loads(payloads[2][1])
    assert keys[2]["data"] == {"group": "g", "topic": "t", "partition": 0}
    assert offset["data"] == {
        "offset": 7,
        "leaderEpoch": 2,
        "metadata": "a place",
        "commitTimestamp": groups.clock.wall_ms(),
    }
    assert "NULL" in payloads[-1][1] or payloads[-1][1].strip() in ("null", "<DELETE>")
