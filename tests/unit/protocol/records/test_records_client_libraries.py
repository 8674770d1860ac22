"""kafka-python and aiokafka as oracles: they read what we build, we read what they build."""

from collections.abc import Callable
from typing import Any

import aiokafka.record.default_records as aio_default
import aiokafka.record.legacy_records as aio_legacy
import aiokafka.record.memory_records as aio_memory
import kafka.record.default_records as kafka_default
import kafka.record.legacy_records as kafka_legacy
import kafka.record.memory_records as kafka_memory
import pytest

from protocol.records.batch import iter_batches, read_header, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.message_set import build_message_set
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch

ROWS = [
    (
        1_700_000_000_000 + i * 7 % 50,
        None if i % 5 == 4 else b"key %d" % i,
        b"value " * (i % 40),
        [],
    )
    for i in range(150)
]
ROWS[3] = (1_700_000_000_003, b"k", None, [("a", b"x"), ("b", b""), ("c", None)])
CODECS = list(CompressionType)
# Neither library writes or reads LZ4 in format 0 as installed; golden files cover it.
OLD = [(magic, codec) for magic in (0, 1) for codec in CODECS[: 3 + magic]]
V2_BUILDERS: list[Callable[..., Any]] = [
    kafka_default.DefaultRecordBatchBuilder,
    aio_default.DefaultRecordBatchBuilder,
]
V2_READERS: list[Callable[..., Any]] = [kafka_memory.MemoryRecords, aio_memory.MemoryRecords]
OLD_BUILDERS: list[Callable[..., Any]] = [
    kafka_legacy.LegacyRecordBatchBuilder,
    aio_legacy.LegacyRecordBatchBuilder,
]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("builder", V2_BUILDERS)
def test_we_read_their_batches(builder: Callable[..., Any], codec: CompressionType) -> None:
    theirs = builder(
        magic=2,
        compression_type=int(codec),
        is_transactional=1,
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        batch_size=1 << 20,
    )
    for i, (timestamp, key, value, headers) in enumerate(ROWS):
        theirs.append(i, timestamp, key, value, headers)
    data = bytes(theirs.build())
    header = read_header(data)
    assert verify_crc(data, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 9)
    assert header.is_transactional
    assert [(r.timestamp, r.key, r.value, r.headers) for r in iter_records(data)] == ROWS
    keyless = tuple(i for i, row in enumerate(ROWS) if row[1] is None)
    assert check_batch(data, 0, header, RecordRules(need_keys=True)).keyless == keyless


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", V2_READERS)
def test_they_read_our_batches(reader: Callable[..., Any], codec: CompressionType) -> None:
    data = build_batch(ROWS, base_offset=40, codec=codec)
    batch = reader(data).next_batch()
    assert batch.validate_crc()
    found = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert found == [(40 + i, t, k, v, h) for i, (t, k, v, h) in enumerate(ROWS)]


@pytest.mark.parametrize(("magic", "codec"), OLD)
@pytest.mark.parametrize("builder", OLD_BUILDERS)
def test_we_read_their_message_sets(
    builder: Callable[..., Any], magic: int, codec: CompressionType
) -> None:
    theirs = builder(magic=magic, compression_type=int(codec), batch_size=1 << 20)
    for i, (timestamp, key, value, _) in enumerate(ROWS):
        theirs.append(i, timestamp, key, value)
    data = bytes(theirs.build())
    assert all(verify_crc(data, pos, header) for pos, header in iter_batches(data))
    found = [r for pos, _ in iter_batches(data) for r in iter_records(data, pos)]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in found] == [
        (i, t if magic else -1, k, v) for i, (t, k, v, _) in enumerate(ROWS)
    ]


@pytest.mark.parametrize(("magic", "codec"), OLD)
@pytest.mark.parametrize("reader", V2_READERS)
def test_they_read_our_message_sets(
    reader: Callable[..., Any], magic: int, codec: CompressionType
) -> None:
    data = build_message_set(
        [(i + 9, t, k, v) for i, (t, k, v, _) in enumerate(ROWS)], magic=magic, codec=codec
    )
    theirs = reader(data)
    found = []
    while theirs.has_next():
        batch = theirs.next_batch()
        assert batch.validate_crc()
        found += [(r.offset, r.timestamp, r.key, r.value) for r in batch]
    assert found == [(i + 9, t if magic else None, k, v) for i, (t, k, v, _) in enumerate(ROWS)]
