"""Looking into batches without record objects: chain, fields, times, and the whole check."""

import random
from collections.abc import Sequence

import pytest

from protocol.records import scan_numpy, scan_python
from protocol.records.batch import (
    BATCH_OVERHEAD,
    TimestampType,
    read_header,
)
from protocol.records.builder import NewRecord, assemble_batch, build_batch, encode_record
from protocol.records.chain import record_starts
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import CorruptBatch, InvalidRecord
from protocol.records.message_set import build_message_set
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.record_validation import Findings, RecordRules, check_batch
from protocol.records.scan import fields_of
from protocol.records.scan_fields import RecordFields
from protocol.records.search import first_at_or_after
from protocol.records.varint import encode_varint

SMALL_AND_LARGE = [1, 2, 79, 80, 81, 300]


def rows(count: int, seed: int = 0) -> list[NewRecord]:
    rng = random.Random(seed)
    return [
        (
            1_000_000 + rng.randrange(-5000, 5000),
            None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 3, 70, 200))),
            None if rng.random() < 0.1 else rng.randbytes(rng.choice((0, 10, 100, 9000))),
            [("h" * rng.randrange(3), rng.choice((None, b"", b"x" * 100)))] * rng.choice((0, 0, 2)),
        )
        for _ in range(count)
    ]


def raw_batch(payload: bytes, count: int, attributes: int = 0, **fields: int) -> bytes:
    """A batch of any payload and claims, its checksum right."""
    given = {"base_offset": 0, "last_offset_delta": count - 1, "base_timestamp": 0}
    given |= {"max_timestamp": 0, **fields}
    return assemble_batch(payload, record_count=count, attributes=attributes, **given)


def fields_in(batch: bytes, pos: int = 0) -> RecordFields:
    header = read_header(batch, pos)
    return fields_of(payload_of(batch, pos, header), header)


def check(batch: bytes, pos: int = 0, **rules: int) -> Findings:
    return check_batch(batch, pos, read_header(batch, pos), RecordRules(**rules))


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("count", SMALL_AND_LARGE)
def test_a_sound_batch_is_described(count: int, codec: CompressionType) -> None:
    records = rows(count)
    batch = b"12345" + build_batch(records, base_offset=50, codec=codec)
    stamps = [record[0] for record in records]
    keyless = tuple(i for i, record in enumerate(records) if record[1] is None)
    fields = fields_in(batch, 5)
    assert fields.keyless() == keyless
    assert fields.first_out_of_sequence() is None
    assert fields.time_range() == (min(stamps), max(stamps))
    assert check(batch, 5, need_keys=True) == Findings(max(stamps), keyless)
    assert check(batch, 5) == Findings(max(stamps))


@pytest.mark.parametrize("count", SMALL_AND_LARGE)
def test_s_app_4_records_outside_the_time_bounds_are_named(count: int) -> None:
    records = rows(count)
    records[-1] = (-1, b"k", b"no timestamp is always accepted", ())
    batch = build_batch(records)
    expected = tuple(i for i, r in enumerate(records[:-1]) if not 999_000 <= r[0] <= 1_001_000)
    assert fields_in(batch).outside(999_000, 1_001_000) == expected
    found = check(batch, least_timestamp=999_000, greatest_timestamp=1_001_000)
    assert found.outside == expected


@pytest.mark.parametrize("count", [3, 200])
def test_log_append_time_hides_the_records_own_times(count: int) -> None:
    batch = build_batch(
        rows(count),
        base_offset=9,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=77,
    )
    assert first_at_or_after(batch, 0, 77) == (9, 77)
    assert first_at_or_after(batch, 0, 77, start_offset=10) == (10, 77)
    assert first_at_or_after(batch, 0, 78) is None


@pytest.mark.parametrize("count", [5, 300])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_s_ts_2_first_record_at_or_after(count: int, codec: CompressionType) -> None:
    """S-TS-2, S-TS-3: the first by offset, however the timestamps lie."""
    records = rows(count, seed=3)
    batch = build_batch(records, base_offset=100, codec=codec)
    stamps = [record[0] for record in records]
    for target in [min(stamps) - 1, *sorted(stamps)[:: max(1, count // 10)], max(stamps)]:
        for start in (0, 100, 100 + count // 2):
            found = [(100 + i, t) for i, t in enumerate(stamps) if t >= target and 100 + i >= start]
            expected = found[0] if found else None
            assert first_at_or_after(batch, 0, target, start_offset=start) == expected
    assert first_at_or_after(batch, 0, max(stamps) + 1) is None


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_first_record_at_or_after_in_old_formats(codec: CompressionType) -> None:
    old = build_message_set(
        [(5, 10, None, b"a"), (6, 30, None, b"b"), (7, 20, None, b"c")], magic=1, codec=codec
    )
    if codec:
        assert first_at_or_after(old, 0, 15) == (6, 30)
        assert first_at_or_after(old, 0, 15, start_offset=7) == (7, 20)
    else:
        assert first_at_or_after(old, 0, 10) == (5, 10)
        assert first_at_or_after(old, 0, 15) is None


@pytest.mark.parametrize("count", [5, 300])
def test_compacted_batches_keep_their_offset_deltas(count: int) -> None:
    payload = b"".join(encode_record(3 * i + 1, i, b"k", b"v") for i in range(count))
    batch = raw_batch(payload, count, base_offset=10, max_timestamp=count)
    assert fields_in(batch).first_out_of_sequence() == 0
    assert first_at_or_after(batch, 0, 2) == (10 + 3 * 2 + 1, 2)


@pytest.mark.parametrize("count", [5, 300])
def test_a_wrong_offset_delta_is_found_and_refused(count: int) -> None:
    deltas = [*range(count - 2), 1, count - 1]
    payload = b"".join(encode_record(delta, 0, b"k", b"v") for delta in deltas)
    batch = raw_batch(payload, count)
    assert fields_in(batch).first_out_of_sequence() == count - 2
    with pytest.raises(InvalidRecord, match=f"Record {count - 2} "):
        check(batch)


@pytest.mark.parametrize("count", [4, 300])
@pytest.mark.parametrize("claimed", [-1, 0, 1, -2, +1, 10**9])
@pytest.mark.parametrize("codec", list(CompressionType))
def test_s_app_1_a_count_that_does_not_match_is_invalid(
    count: int, claimed: int, codec: CompressionType
) -> None:
    payload = b"".join(encode_record(i, 0, b"k", b"v" * i) for i in range(count))
    number = {-1: count - 1, -2: -2, 1: count + 1}.get(claimed, claimed)
    batch = raw_batch(compress(codec, payload), number, int(codec))
    for look in (fields_in, check):
        with pytest.raises(InvalidRecord):
            look(batch)
    with pytest.raises(InvalidRecord):
        list(iter_records(batch))


def body(*parts: bytes) -> bytes:
    joined = b"".join(parts)
    return bytes([2 * len(joined)]) + joined


GOOD = encode_record(0, 0, b"key", b"value", [("h", b"x")])
LONG_VARINT = b"\xff" * 11
BAD_RECORDS = {
    "key beyond the record": body(b"\0\0\0", b"\x20key", b"\x01\0"),
    "value beyond the record": body(b"\0\0\0", b"\x06key", b"\x40v\0"),
    "bytes left over": body(b"\0\0\0\x01\x01\0", b"rest"),
    "negative header count": body(b"\0\0\0\x01\x01\x01"),
    "header count beyond the record": body(b"\0\0\0\x01\x01\x10\0\0"),
    "header without name": body(b"\0\0\0\x01\x01\x02\x01\x00"),
    "header beyond the record": body(b"\0\0\0\x01\x01\x02\x02a\x30"),
    "endless timestamp": body(b"\0", LONG_VARINT, b"\0\x01\x01\0"),
    "endless offset": body(b"\0\0", b"\xff" * 5, b"\0\x01\x01\0"),
    "endless key length": body(b"\0\0\0", b"\xff" * 5, b"\x01\0"),
    "no room for the fields": body(b"\0\0\0\x01\x01", b"\x80"),
    "too short": body(b"\0\0\0\x01\x01"),
    "negative length": b"\x01" + b"\0" * 8,
    "longer than the batch": b"\xfe\x7f" + b"\0" * 8,
    "endless length": b"\xff" * 6 + b"\0" * 8,
    "one byte": b"\x0c",
}


@pytest.mark.parametrize("name", BAD_RECORDS)
@pytest.mark.parametrize("before", [0, 1, 40, 200])
def test_broken_records_are_invalid_for_every_reader(name: str, before: int) -> None:
    """S-APP-3: whatever reads the batch says INVALID_RECORD, small or large, with numpy or not."""
    tail = [] if name in ("one byte", "longer than the batch") else [GOOD]
    payload = b"".join([GOOD] * before + [BAD_RECORDS[name]] + tail)
    batch = raw_batch(payload, before + 1 + len(tail))
    for look in (fields_in, check):
        with pytest.raises(InvalidRecord):
            look(batch)
    with pytest.raises(InvalidRecord):
        list(iter_records(batch))


def test_many_headers_in_one_record() -> None:
    for count in (15, 16, 17, 500):
        record = encode_record(0, 0, b"k", b"v", [("name", b"x"), ("n", None)] * count)
        filler = [encode_record(i + 1, 0, b"k", b"v") for i in range(100)]
        batch = raw_batch(record + b"".join(filler), 101)
        assert fields_in(batch).keyless() == check(batch, need_keys=True).keyless == ()
        broken = raw_batch(record[:-3] + b"\x30\x01\0" + b"".join(filler), 101)
        for look in (fields_in, check):
            with pytest.raises(InvalidRecord):
                look(broken)


def test_a_run_of_headers_whose_names_have_negative_lengths_is_invalid() -> None:
    """The first headers of a record are read one by one, the others in runs of one size."""
    filler = b"".join(encode_record(i + 1, 0, b"k", b"v") for i in range(100))
    for name in (b"\0", b"\1"):
        headers = b"\0\1" * 500 + (name + b"\1") * 500
        record = b"\0\0\0\1\1" + encode_varint(1000) + headers
        batch = raw_batch(encode_varint(len(record)) + record + filler, 101)
        for look in (fields_in, check):
            if name == b"\0":
                look(batch)
                continue
            with pytest.raises(InvalidRecord):
                look(batch)


def test_timestamps_wrap_as_java_longs_do() -> None:
    for count in (2, 200):
        payload = b"".join(encode_record(i, 2**63 - 1, b"k", b"v") for i in range(count))
        batch = raw_batch(payload, count, base_timestamp=10)
        assert fields_in(batch).time_range() == (10 - 2**63 - 1,) * 2
        assert next(iter_records(batch)).timestamp == 10 - 2**63 - 1


def test_a_batch_without_records_is_sound_and_empty() -> None:
    """Compaction leaves such batches behind."""
    batch = raw_batch(b"", 0, last_offset_delta=5)
    assert fields_in(batch).time_range() == (-1, -1)
    assert check(batch, need_keys=True) == Findings(-1)
    assert list(iter_records(batch)) == []
    assert first_at_or_after(batch, 0, 0) is None


def test_a_batch_cut_by_its_buffer_is_corrupt() -> None:
    batch = build_batch(rows(5))
    with pytest.raises(CorruptBatch):
        fields_in(batch[:-1])
    with pytest.raises(CorruptBatch):
        list(iter_records(batch[:-1]))


@pytest.mark.parametrize(
    "sizes",
    [
        [0] * 10,
        [50] * 1000,
        [64] * 31 + [63] * 33 + [8200] * 3 + [5] * 600,
        [*range(200), *range(8100, 8250)],
        [2_100_000, 0, 3],
    ],
)
def test_starts_of_runs_and_mixtures(sizes: Sequence[int]) -> None:
    records = [encode_record(i, 0, None, b"v" * size) for i, size in enumerate(sizes)]
    expected = [0]
    for record in records:
        expected.append(expected[-1] + len(record))
    payload = b"".join(records)
    assert record_starts(payload, len(sizes)) == expected
    for wrong in (len(sizes) - 1, len(sizes) + 1):
        with pytest.raises(InvalidRecord):
            record_starts(payload, wrong)
    with pytest.raises(InvalidRecord):
        record_starts(payload[:-1], len(sizes))
    with pytest.raises(InvalidRecord):
        record_starts(payload + b"\0", len(sizes))


@pytest.mark.parametrize("count", [1, 30, 500])
def test_both_field_readers_agree(count: int) -> None:
    batch = build_batch(rows(count, seed=8))
    payload = batch[BATCH_OVERHEAD:]
    starts = record_starts(payload, count)
    few = scan_python.read_fields(payload, starts, 1000)
    many = scan_numpy.read_fields(payload, starts, 1000)
    assert few.timestamps == many.timestamps.tolist()
    assert few.offset_deltas == many.offset_deltas.tolist()
    assert few.key_lengths == many.key_lengths.tolist()
    assert few.time_range() == many.time_range()
    assert few.keyless() == many.keyless()
    assert few.outside(2000, 3000) == many.outside(2000, 3000)
    assert few.first_from(2000, 3) == many.first_from(2000, 3)


def test_a_compressed_batch_within_bounds_only() -> None:
    batch = build_batch([(0, None, bytes(3 << 20), ())], codec=CompressionType.ZSTD)
    header = read_header(batch)
    with pytest.raises(InvalidRecord, match="more than"):
        payload_of(batch, 0, header, max_size=1 << 20)
    with pytest.raises(InvalidRecord, match="more than"):
        check_batch(batch, 0, header, RecordRules(), max_size=1 << 20)
    with pytest.raises(InvalidRecord, match="more than"):
        list(iter_records(batch, max_size=1 << 20))
