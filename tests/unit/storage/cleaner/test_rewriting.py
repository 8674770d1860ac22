"""Batches that lose records: what stays of them, byte for byte (S-CMP-7)."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from protocol.records.batch import (
    BATCH_OVERHEAD,
    DELETE_HORIZON_BIT,
    BatchHeader,
    TimestampType,
    iter_batches,
    verify_crc,
)
from protocol.records.builder import assemble_batch, build_batch, encode_record
from protocol.records.compression import CompressionType
from protocol.records.message_set import build_message_set
from protocol.records.record import Record, iter_records
from storage.cleaner import opening, walking
from tests.support.compacted_log import CODECS, CompactedLog

RETENTION = 86_400_000


def as_kafka_builds_it(header: BatchHeader, records: Sequence[Record], horizon: int) -> bytes:
    """The batch with these records, one by one; uncompressed (`MemoryRecordsBuilder`)."""
    by_log = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    base = horizon if horizon >= 0 else records[0].timestamp
    payload = b"".join(
        encode_record(
            record.offset - header.base_offset,
            record.timestamp - base,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    )
    return assemble_batch(
        payload,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        record_count=len(records),
        base_timestamp=base,
        max_timestamp=header.max_timestamp if by_log else max(r.timestamp for r in records),
        attributes=header.attributes & 0x3F | (DELETE_HORIZON_BIT if horizon >= 0 else 0),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.partition_leader_epoch,
    )


def random_log(
    chance: random.Random, *, spread: int, codec: CompressionType, **config: object
) -> CompactedLog:
    """Batches with records of many ages, sizes and headers."""
    log = CompactedLog(segment_bytes=20_000, **config)
    sequence = 0
    for _ in range(40):
        log.clock.advance(ms=chance.randrange(1, 50))
        count = chance.choice((1, 2, 3, 20))
        records = [
            (
                log.clock.wall_ms() + chance.randrange(-spread, spread + 1),
                b"%d" % chance.randrange(60),
                None if chance.random() < 0.1 else chance.randbytes(chance.choice((0, 9, 200))),
                [("h", b"x"), ("n", None)] if chance.random() < 0.2 else [],
            )
            for _ in range(count)
        ]
        data = build_batch(
            records, codec=codec, producer_id=7, producer_epoch=0, base_sequence=sequence
        )
        sequence += count
        log.log.append_as_leader(bytearray(data), leader_epoch=3)
    log.log.update_high_watermark(log.log.log_end_offset)
    return log


def raw_batches(log: CompactedLog) -> list[tuple[BatchHeader, bytes]]:
    found = []
    for segment in log.log.segments:
        data = segment.file.pread(segment.size, 0)
        for at, header in iter_batches(data):
            assert verify_crc(data, at, header)
            found.append((header, data[at : at + header.size]))
    return found


@pytest.mark.parametrize("step_bytes", [1, 1 << 20])
@pytest.mark.parametrize("dated_by", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("spread", [0, 20, 100_000])
def test_s_cmp_7_batches_are_what_kafka_makes_of_them(
    spread: int, dated_by: str, step_bytes: int
) -> None:
    log = random_log(
        random.Random(spread),
        spread=spread,
        codec=CompressionType.NONE,
        message_timestamp_type=dated_by,
        delete_retention_ms=RETENTION,
    )
    before = {header.base_offset: (header, data) for header, data in raw_batches(log)}
    log.clean(step_bytes=step_bytes)
    now = log.clock.wall_ms()
    kinds = set()
    for header, data in raw_batches(log):
        old, old_data = before[header.base_offset]
        records = list(iter_records(data))
        tombstones = any(record.value is None for record in records)
        if not records:
            kinds.add("empty")
            assert header.size == BATCH_OVERHEAD
            continue
        if len(records) == old.record_count and not tombstones:
            kinds.add("whole")
            assert data == old_data
            continue
        kinds.add("rewritten")
        assert data == as_kafka_builds_it(old, records, now + RETENTION if tombstones else -1)
    assert {"whole", "rewritten"} <= kinds


@pytest.mark.parametrize("codec", CODECS)
def test_s_cmp_7_offsets_sequences_epochs_codecs_and_times_stay(codec: CompressionType) -> None:
    log = random_log(random.Random(5), spread=10, codec=codec)
    before = {r.offset: r for _, records in log.batches() for r in records}
    headers = {header.base_offset: header for header, _ in log.batches()}
    latest = {record.key: record.offset for record in before.values()}
    log.clean()
    after = [record for _, records in log.batches() for record in records]
    assert [record.offset for record in after] == sorted(latest.values())
    assert all(record == before[record.offset] for record in after)
    for header, records in log.batches():
        old = headers[header.base_offset]
        assert header.last_offset == old.last_offset
        assert header.last_sequence == old.last_sequence
        assert (header.producer_id, header.partition_leader_epoch) == (7, 3)
        assert header.codec == (codec if records else CompressionType.NONE)
        if records:
            assert header.max_timestamp == max(record.timestamp for record in records)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "limits",
    [
        {"_LARGE_PLAIN": 300, "_LARGE_INFLATED": 300, "_ENOUGH_RECORDS": 7},
        {"_ENOUGH": 100, "_ENOUGH_RECORDS": 5, "_PIECE": 700},
    ],
    ids=["a large batch in chunks", "many batches in parts"],
)
def test_s_cmp_7_what_is_opened_in_pieces_becomes_the_same(
    limits: dict[str, int], codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [random_log(random.Random(8), spread=30, codec=codec) for _ in range(2)]
    logs[0].clean()
    for name, limit in limits.items():
        monkeypatch.setattr(walking if name == "_PIECE" else opening, name, limit)
    stats = logs[1].clean(**({"io_buffer_bytes": 1} if "_PIECE" in limits else {}))
    assert [data for _, data in raw_batches(logs[0])] == [data for _, data in raw_batches(logs[1])]
    assert stats.messages_written == len(logs[1].offsets())


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4, CompressionType.GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_s_cmp_7_old_formats_become_new(magic: int, codec: CompressionType) -> None:
    log = CompactedLog()
    keys = [b"a", b"b", b"a", b"c", b"b", b"d"]
    records = [(at, 1000 + at, key, b"%d" % at) for at, key in enumerate(keys)]
    for part in (records[:4], records[4:]):
        log.log.appender.append_as_follower(build_message_set(part, magic=magic, codec=codec))
    log.log.update_high_watermark(log.log.log_end_offset)
    log.clean()
    assert log.offsets() == [2, 3, 4, 5]
    (data,) = (segment.file.pread(segment.size, 0) for segment in [log.log.segments.first])
    batches = list(iter_batches(data))
    assert [(h.magic, h.codec) for _, h in batches] == [(2, codec)] * (2 if codec else 4)
    assert all(verify_crc(data, at, header) for at, header in batches)
    read = [record for at, _ in batches for record in iter_records(data, at)]
    assert [r.timestamp for r in read] == ([1002, 1003, 1004, 1005] if magic else [-1] * 4)
    assert [h.max_timestamp for _, h in batches][-1] == (1005 if magic else -1)


def test_s_cmp_8_an_old_message_whose_end_has_to_stay_becomes_an_empty_batch() -> None:
    """Kafka finds no empty batch in formats 0 and 1, and gives up on the log."""
    log = CompactedLog()
    log.log.appender.append_as_follower(build_message_set([(0, 1, b"a", b"1")], magic=1))
    log.log.appender.append_as_follower(build_message_set([(1, 1, None, b"x")], magic=1))
    log.log.update_high_watermark(2)
    log.clean()
    assert log.offsets() == [0]
    header, records = log.batches()[-1]
    assert (header.magic, header.last_offset, header.record_count, records) == (2, 1, 0, [])


def test_s_cmp_9_a_segment_of_which_nothing_stays_is_replaced_by_an_empty_one() -> None:
    log = CompactedLog()
    for key in (None, 1):
        log.append_unchecked((key and b"1", b"x"))
        log.log.roll()
    log.fs.set_mtime_ms(log.log.segments.first.files.path, 40_000)
    log.log.update_config(replace(log.config, segment_bytes=1))
    log.clean()
    first = log.log.segments.first
    assert (first.base_offset, first.size) == (0, 0)
    assert {f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex")} <= set(log.names())
    assert log.fs.mtime_ms(first.files.path) == 40_000
    log.stopped()
    assert [segment.base_offset for segment in log.log.segments] == [0, 1, 2]
    assert log.offsets() == [1]


def test_s_cmp_10_the_new_segment_is_dated_as_the_last_of_its_sources() -> None:
    log = CompactedLog()
    for key, modified in ((1, 50_000), (2, 40_000)):
        log.keys(key)
        segment = log.log.segments.active
        log.log.roll()
        log.fs.set_mtime_ms(segment.files.path, modified)
    log.keys(3)
    log.clean(roll=False)
    first, active = log.log.segments
    assert (first.base_offset, active.base_offset) == (0, 2)
    assert log.fs.mtime_ms(first.files.path) == 40_000
    log.stopped()
    assert log.fs.mtime_ms(log.log.segments.first.files.path) == 40_000
