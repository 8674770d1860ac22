"""A workload of the same bytes for every broker: raw requests, fixed timestamps, fixed ids.

The result depends only on the broker, so the files of two brokers can be compared byte for byte
(S-FMT-3). Every answer is kept, because the answers must agree as well.
"""

import random
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from protocol.api_keys import ApiKey
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.records.batch import ATTRIBUTES_OFFSET, CRC_OFFSET, crc_of
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from tests.support.produce_requests import one_batch
from tests.support.wire_client import WireClient

PRODUCE_VERSION = 11
BEGIN = 1_700_000_000_000
SEED = 4

TOPICS = {
    # Three segments by size, every codec, producers that come and go, a sparse index.
    "codecs": {"segment.bytes": "1048576", "index.interval.bytes": "700"},
    # An entry for every batch, and room for a few: segments roll when an index is full.
    "narrow": {"segment.index.bytes": "120", "index.interval.bytes": "1"},
    # Segments roll by the timestamps of the records (S-ROLL-1).
    "timed": {"segment.ms": "60000"},
    # The broker opens every batch and rebuilds it.
    "rebuilt": {"compression.type": "uncompressed", "index.interval.bytes": "300"},
    # Attribute bits that no client sets: a delete horizon, bits nobody has defined (S-FMT-4).
    "attributes": {},
    # The start of the log is moved into the middle of a segment.
    "shortened": {},
    # Nothing was ever written here.
    "empty": {},
}
"""The topics' own configs, by name; each has one partition and keeps its records for ever."""


@dataclass(frozen=True, slots=True)
class Send:
    """One batch for one partition."""

    topic: str
    batch: bytes
    transactional_id: str | None = None


@dataclass(slots=True)
class Outcome:
    """A broker's answers: for batches (topic, error, base offset, log start offset)."""

    answers: list[tuple[str, int, int, int]] = field(default_factory=list)
    deletions: list[tuple[int, int]] = field(default_factory=list)


def records(rng: random.Random, count: int, size: int, at: int) -> list[Any]:
    """Return records with and without keys, values and headers, not sorted by time."""
    return [
        (
            at + rng.randrange(-500, 500),
            rng.choice((None, b"", b"key-%d" % rng.randrange(99))),
            rng.choice((None, rng.randbytes(size), b"text " * (size // 5))),
            rng.choice(([], [("h", b"v"), ("null", None)])),
        )
        for _ in range(count)
    ]


def script(begin: int = BEGIN) -> Iterator[Send]:
    """Yield the whole workload; `begin` is the time of the first records."""
    rng = random.Random(SEED)
    yield from codecs(rng, begin)
    for at in range(60):
        yield Send("narrow", build_batch(records(rng, 1 + at % 3, 20, begin + at * 10)))
    for step in (0, 10_000, 59_999, 60_001, 61_000, 30_000, 200_000, 200_001, 259_000, 900_000):
        yield Send("timed", build_batch(records(rng, 3, 50, begin + step)))
    for at in range(30):
        codec = CompressionType(at % 5)
        yield Send("rebuilt", build_batch(records(rng, 4, 60, begin + at), codec=codec))
    for bits in (0x40, 0x80, 0x100, 0x4000, 0x8000, 0x83C0):
        for codec in CompressionType:
            batch = build_batch(records(rng, 2, 30, begin + bits), codec=codec)
            yield Send("attributes", with_attributes(batch, bits))
    for at in range(20):
        yield Send("shortened", build_batch(records(rng, 5, 60, begin + at)))


def with_attributes(batch: bytes, bits: int) -> bytes:
    """Return the batch with these attribute bits set too, and the right checksum."""
    changed = bytearray(batch)
    (attributes,) = struct.unpack_from(">H", batch, ATTRIBUTES_OFFSET)
    struct.pack_into(">H", changed, ATTRIBUTES_OFFSET, attributes | bits)
    struct.pack_into(">I", changed, CRC_OFFSET, crc_of(changed, 0, len(changed)))
    return bytes(changed)


def codecs(rng: random.Random, begin: int) -> Iterator[Send]:
    """Yield batches of idempotent and other producers, some repeated, damaged or out of order."""
    sequences: dict[int, int] = {}
    producers = (7, 23, 39, 4000, 1 << 33, 55, 12, 100_000_007)
    for at in range(260):
        count = rng.randrange(1, 30)
        rows = records(rng, count, rng.choice((10, 200, 6000)), begin + at * 1000)
        codec = CompressionType(at % 5)
        if at % 3 == 0:
            yield Send("codecs", build_batch(rows, codec=codec))
            continue
        # Producers take turns, so that some are silent in the end and some come late.
        producer = producers[(at // 40 + at % 2) % len(producers)]
        batch = build_batch(
            rows,
            codec=codec,
            producer_id=producer,
            producer_epoch=producer % 5,
            base_sequence=sequences.get(producer, 0),
        )
        sequences[producer] = sequences.get(producer, 0) + count
        yield Send("codecs", batch)
        if at % 17 == 0:
            yield Send("codecs", batch)  # a retry, with the same answer and no second write
        if at % 29 == 0:
            torn = bytearray(batch)
            torn[-1] ^= 1
            yield Send("codecs", bytes(torn))
        if at % 31 == 0:
            ahead = build_batch(
                rows,
                producer_id=producer,
                producer_epoch=producer % 5,
                base_sequence=sequences[producer] + 5,
            )
            yield Send("codecs", ahead)


def make_topics(bootstrap: str, topics: dict[str, dict[str, str]]) -> None:
    """Create topics with one partition each."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    wishes = [
        NewTopic(name, 1, 1, config={"retention.ms": "-1", **config})
        for name, config in topics.items()
    ]
    for future in admin.create_topics(wishes).values():
        future.result(30)


def produce(client: WireClient, send: Send) -> tuple[str, int, int, int]:
    """Send one batch; return (topic, error code, base offset, log start offset)."""
    request = one_batch(send.topic, send.batch, transactional_id=send.transactional_id)
    response = client.call(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    answer = response.responses[0].partition_responses[0]
    return send.topic, answer.error_code, answer.base_offset, answer.log_start_offset


def run_script(port: int, bootstrap: str) -> Outcome:
    """Make the topics and send everything, in order."""
    make_topics(bootstrap, TOPICS)
    outcome = Outcome()
    with WireClient(port, timeout_s=30) as client:
        for topic in TOPICS:
            wait_until_led(client, topic)
        outcome.answers = [produce(client, send) for send in script()]
        for offset in (37, 20):
            outcome.deletions.append(delete_records(client, "shortened", offset))
    return outcome


def delete_records(client: WireClient, topic: str, offset: int) -> tuple[int, int]:
    """Send DeleteRecords; return (error code, new log start offset)."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=30_000
    )
    result = client.call(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]
    return result.error_code, result.low_watermark


def wait_until_led(client: WireClient, topic: str) -> None:
    """Wait for a leader: Kafka answers CreateTopics before the partition has one."""
    deadline = time.monotonic() + 20
    while delete_records(client, topic, 0)[0] != 0:
        assert time.monotonic() < deadline, f"{topic} has no leader"
        time.sleep(0.02)


# ---- transactions, for a broker that lets them be written without a coordinator


def transactions(port: int, bootstrap: str, topic: str) -> None:
    """Write interleaved transactions of four producers, some aborted, one left open.

    Needs `transaction.partition.verification.enable=false`, as no coordinator knows them.
    """
    make_topics(bootstrap, {topic: {"segment.index.bytes": "120", "index.interval.bytes": "1"}})
    rng = random.Random(SEED)
    sequences = dict.fromkeys((1000, 1001, 2000, 70_000), 0)
    opened: set[int] = set()
    with WireClient(port, timeout_s=30) as client:
        wait_until_led(client, topic)
        for at in range(80):
            producer = rng.choice(sorted(sequences))
            if producer in opened and rng.random() < 0.4:
                write_marker(client, topic, producer, commit=rng.random() < 0.5)
                opened.discard(producer)
                continue
            rows = records(rng, rng.randrange(1, 5), 40, BEGIN + at * 100)
            batch = build_batch(
                rows,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequences[producer],
                transactional=True,
            )
            sequences[producer] += len(rows)
            opened.add(producer)
            answer = produce(client, Send(topic, batch, f"id-{producer}"))
            assert answer[1] == 0, answer
        for producer in sorted(opened)[1:]:
            write_marker(client, topic, producer, commit=False)


def write_marker(client: WireClient, topic: str, producer: int, *, commit: bool) -> None:
    """Send WriteTxnMarkers for partition 0."""
    marker = WritableTxnMarker(
        producer_id=producer,
        producer_epoch=0,
        transaction_result=commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=3,
    )
    response = client.call(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker]))
    result = response.markers[0].topics[0].partitions[0]
    assert result.error_code == 0, result
