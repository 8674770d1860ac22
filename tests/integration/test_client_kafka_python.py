"""kafka-python, unmodified and with its default settings."""

import threading
import time
import warnings

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
RECORDS = [(f"k{i}".encode(), f"value {i} ".encode() * 20) for i in range(200)]


@pytest.mark.parametrize("codec", CODECS)
def test_produces_and_consumes_every_codec(bootstrap: str, topic: str, codec: str | None) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec)
    sent = [producer.send(topic, key=k, value=v, headers=[("h", b"1")]) for k, v in RECORDS]
    producer.flush()
    assert [f.get(10).offset for f in sent] == list(range(len(RECORDS)))
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    got = [next(consumer) for _ in RECORDS]
    consumer.close()
    assert [(m.key, m.value) for m in got] == RECORDS
    assert {tuple(map(tuple, m.headers)) for m in got} == {(("h", b"1"),)}


def test_a_group_of_three_shares_the_partitions_and_resumes(
    bootstrap: str, topic: str, group: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, num_partitions=6, replication_factor=1)])
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(600):
        producer.send(topic, value=str(i).encode(), partition=i % 6)
    producer.flush()
    seen: list[bytes] = []
    lock = threading.Lock()
    stop = threading.Event()
    owned: dict[int, set[int]] = {}

    def member(number: int) -> None:
        consumer = KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        while not stop.is_set():
            for records in consumer.poll(timeout_ms=200).values():
                with lock:
                    seen.extend(r.value for r in records)
            with lock:
                owned[number] = {p.partition for p in consumer.assignment()}
        consumer.close()

    members = [threading.Thread(target=member, args=(n,)) for n in range(3)]
    for m in members:
        m.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with lock:
            if len(set(seen)) == 600 and sorted(map(len, owned.values())) == [2, 2, 2]:
                break
        stop.wait(0.1)
    stop.set()
    for m in members:
        m.join(30)
    assert set(seen) == {str(i).encode() for i in range(600)}
    assert sorted(map(len, owned.values())) == [2, 2, 2]
    committed = admin.list_group_offsets(group)
    offsets = committed.get(group, committed)
    assert sum(o.offset for o in offsets.values()) == 600
    producer.close()
    admin.close()


def test_offsets_by_time_and_ends(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(10):
        producer.send(topic, value=b"x", timestamp_ms=1_700_000_000_000 + i * 1000).get(10)
    tp = TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    assert consumer.beginning_offsets([tp]) == {tp: 0}
    assert consumer.end_offsets([tp]) == {tp: 10}
    found = consumer.offsets_for_times({tp: 1_700_000_004_500})[tp]
    assert (found.offset, found.timestamp) == (5, 1_700_000_005_000)
    assert consumer.offsets_for_times({tp: 1_900_000_000_000})[tp] is None
    consumer.close()
    producer.close()


def test_admin_creates_describes_alters_and_deletes(bootstrap: str, topic: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])
        assert topic in admin.list_topics()
        admin.create_partitions({topic: 5})
        described = admin.describe_topics([topic])[0]
        assert len(described["partitions"]) == 5
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
        admin.close()
