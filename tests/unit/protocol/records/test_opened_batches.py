"""Batches opened in chunks, and what is found by holding them against their records."""

import tracemalloc
from collections.abc import Callable

import pytest

from protocol.records.batch import BATCH_OVERHEAD, BatchHeader, read_header
from protocol.records.builder import NewRecord, assemble_batch, build_batch, encode_record
from protocol.records.compression import XERIAL_HEADER, XERIAL_MAGIC, CompressionType, compress
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import InvalidRecord
from protocol.records.opened import open_chunks
from protocol.records.record import iter_records
from protocol.records.record_validation import (
    MOST_FAULTS,
    Findings,
    RecordRules,
    check_batch,
    validated_max_timestamp,
)
from protocol.records.runs import delta_of_one, greatest_delta_of, is_regular
from protocol.records.scan_numpy import read_columns
from protocol.records.varint import encode_varint

T = 1_700_000_000_000
NO_RULES = RecordRules()
CODECS = list(CompressionType)
EMPTY = bytes((12, 0, 0, 0, 1, 1, 0))
"""A record of no key, no value, with offset delta 0."""


def batch_of(payload: bytes, count: int, codec: int = 0, **fields: int) -> bytes:
    values = {"base_timestamp": T, "max_timestamp": T, **fields}
    return assemble_batch(
        compress(CompressionType(codec), payload),
        base_offset=0,
        last_offset_delta=count - 1,
        record_count=count,
        attributes=codec,
        **values,
    )


def check(data: bytes, rules: RecordRules = NO_RULES, effort: Effort | None = None) -> Findings:
    return check_batch(data, 0, read_header(data), rules, effort=effort)


def odd_records(count: int) -> bytes:
    """No two in a row of one size."""
    return b"".join(encode_record(at, 0, None, bytes(at % 2)) for at in range(count))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("chunk", [10, 1000, 1 << 20])
def test_chunks_hold_all_records_in_order(codec: CompressionType, chunk: int) -> None:
    rows: list[NewRecord] = [
        (T + at, b"k" * (at % 3) or None, bytes(at * 7 % 500), [("h", None)] * (at % 4))
        for at in range(200)
    ]
    data = build_batch(rows, codec=codec)
    seen = []
    parts = list(open_chunks(data, 0, read_header(data), chunk=chunk))
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    for part in parts:
        assert part.first == len(seen)
        assert part.starts[0] == 0
        assert part.starts[-1] == len(part.payload)
        columns = read_columns(part.payload, part.starts[:-1], part.starts[1:])
        for at in range(len(part.starts) - 1):
            start, length = int(columns.value_starts[at]), int(columns.value_lengths[at])
            seen.append((int(columns.offset_deltas[at]), part.payload[start : start + length]))
    assert seen == [(record.offset, record.value) for record in iter_records(data)]


def test_a_batch_is_not_inflated_beyond_the_last_record_claimed() -> None:
    data = batch_of(EMPTY * 4_000_000, 10, CompressionType.ZSTD)
    effort = Effort()
    left = effort.bytes
    with pytest.raises(InvalidRecord):
        list(open_chunks(data, 0, read_header(data), effort=effort))
    assert left - effort.bytes < 3 << 20


def test_millions_of_records_take_the_memory_of_some() -> None:
    data = batch_of(EMPTY * 1_000_000, 1_000_000, CompressionType.ZSTD)
    list(open_chunks(data, 0, read_header(data)))  # numpy is imported
    tracemalloc.start()
    try:
        assert sum(len(part.starts) - 1 for part in open_chunks(data, 0, read_header(data))) == (
            1_000_000
        )
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_large_records_take_the_memory_of_a_chunk(codec: CompressionType) -> None:
    batch = build_batch([(0, None, bytes(100_000), ())] * 300, codec=codec)
    header = read_header(batch)
    tracemalloc.start()
    try:
        assert sum(len(part.starts) - 1 for part in open_chunks(batch, 0, header)) == 300
        assert tracemalloc.get_traced_memory()[1] < 8 << 20  # all the records have 30 MB
    finally:
        tracemalloc.stop()


def test_a_hundred_bytes_of_headers_are_no_loop() -> None:
    count = 1_000_000
    body = b"\0\0\0\1\1" + encode_varint(count) + b"\0\0" * count
    data = batch_of(encode_varint(len(body)) + body, 1, CompressionType.ZSTD)
    assert check(data, effort=Effort(steps=5000)).max_timestamp == T


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_effort_ends_what_is_too_much(codec: CompressionType) -> None:
    data = batch_of(odd_records(5000), 5000, codec)
    assert check(data, effort=Effort(steps=10_000)).max_timestamp == T
    with pytest.raises(EffortSpent):
        check(data, effort=Effort(steps=1000))
    if codec:
        with pytest.raises(EffortSpent):
            check(data, effort=Effort(bytes=1000))


def test_headers_of_odd_sizes_are_steps() -> None:
    count = 30_000
    body = b"\0\0\0\1\1" + encode_varint(2 * count) + b"\0\0\2a\1" * count
    for codec in (CompressionType.NONE, CompressionType.ZSTD):
        data = batch_of(encode_varint(len(body)) + body, 1, codec)
        check(data)
        with pytest.raises(EffortSpent):
            check(data, effort=Effort(steps=10_000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [10, 300, 30_000])
def test_offset_deltas_count_from_zero(codec: CompressionType, count: int) -> None:
    right = [encode_record(at, 0, None, b"v") for at in range(count)]
    assert check(batch_of(b"".join(right), count, codec)) == Findings(T)
    for swapped in (right[:-2] + right[-1:] + right[-2:-1], [right[1], right[0], *right[2:]]):
        with pytest.raises(InvalidRecord, match="offset delta"):
            check(batch_of(b"".join(swapped), count, codec))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [1, 70, 300])
def test_the_max_timestamp_is_that_of_the_records(codec: CompressionType, count: int) -> None:
    payload = b"".join(encode_record(at, at * 7 % 100, None, b"v") for at in range(count))
    latest = T + max(at * 7 % 100 for at in range(count))
    for claimed in (latest, latest - 1, latest + 1, -1, 2**62):
        assert check(batch_of(payload, count, codec, max_timestamp=claimed)).max_timestamp == latest


def test_records_before_1970_have_no_timestamp_that_counts() -> None:
    payload = encode_record(0, -5, None, None)
    assert check(batch_of(payload, 1, base_timestamp=0, max_timestamp=-5)).max_timestamp == -1


def test_faults_are_counted_by_index_and_not_without_end() -> None:
    payload = b"".join(encode_record(at, at % 2, None, b"v") for at in range(3000))
    rules = RecordRules(need_keys=True, greatest_timestamp=T)
    found = check(batch_of(payload, 3000, max_timestamp=T), rules)
    assert found.keyless == tuple(range(MOST_FAULTS))
    assert found.outside == tuple(range(1, 2 * MOST_FAULTS, 2))
    assert check(batch_of(payload, 3000), RecordRules(least_timestamp=T + 1)).outside[:2] == (0, 2)


def test_no_timestamp_is_within_any_bounds() -> None:
    data = batch_of(encode_record(0, -1 - T, None, None), 1)
    assert check(data, RecordRules(least_timestamp=T, greatest_timestamp=T)) == Findings(-1)


# At a glance.


def glance(rows: list[NewRecord], **how: bool) -> bool:
    data = build_batch(rows)
    header = read_header(data)
    delta = header.max_timestamp - header.base_timestamp
    return is_regular(data[BATCH_OVERHEAD:], header.record_count, delta, **how)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(T, None, bytes(100), ())] * 150, id="one size"),
        pytest.param([(T + at // 50, b"key", bytes(100), ()) for at in range(150)], id="keys"),
        pytest.param([(T + at, b"key", bytes(100), ()) for at in range(150)], id="milliseconds"),
        pytest.param([(T, bytes(70), bytes(9000), ())], id="long key"),
        pytest.param([(T, None, b"v" * 20, [("name", b"value")])] * 90, id="headers"),
        pytest.param([(T, None, None, ())] * 9000, id="many"),
    ],
)
def test_what_most_producers_send_is_seen_at_a_glance(rows: list[NewRecord]) -> None:
    assert glance(rows) == (len(rows[0][2] or b"") < 8000)


@pytest.mark.parametrize("key", [None, b"", b"k" * 63])
@pytest.mark.parametrize("size", [0, 50, 56, 57, 58, 63, 64, 65, 8000])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 700])
def test_a_glance_sees_the_greatest_timestamp(key: bytes | None, size: int, count: int) -> None:
    deltas = [(0, 3, 40)[at % 3] for at in range(count)]
    payload = b"".join(encode_record(at, d, key, bytes(size)) for at, d in enumerate(deltas))
    greatest = max(deltas)
    assert is_regular(payload, count, greatest)
    assert not is_regular(payload, count, greatest + 1)
    assert not is_regular(payload, count, greatest - 1)
    assert not is_regular(payload, count - 1, greatest)
    assert not is_regular(payload + b"\0", count, greatest)
    assert not is_regular(payload[:-1], count, greatest)


def test_keys_are_seen_at_a_glance() -> None:
    assert glance([(T, b"k", b"v", ())] * 9, need_keys=True)
    assert not glance([(T, None, b"v", ())] * 9, need_keys=True)


def each_byte_changed(data: bytes) -> Callable[[], None]:
    header: BatchHeader = read_header(data)
    payload = data[BATCH_OVERHEAD:]
    delta = header.max_timestamp - header.base_timestamp
    assert is_regular(payload, header.record_count, delta)

    def run() -> None:
        for at in range(len(payload)):
            for flipped in (2, 0x80):
                changed = bytearray(payload)
                changed[at] ^= flipped
                again = batch_of(bytes(changed), header.record_count, base_timestamp=T)
                latest = validated_max_timestamp(bytes(changed), read_header(again))
                if latest is not None:
                    assert latest == max(row.timestamp for row in iter_records(again))
                if is_regular(bytes(changed), header.record_count, delta):
                    rows = list(iter_records(again))
                    assert [row.offset for row in rows] == list(range(len(rows)))
                    assert max(row.timestamp for row in rows) == header.max_timestamp

    return run


@pytest.mark.parametrize("spread", [0, 1, 70])
def test_no_changed_byte_is_overlooked(spread: int) -> None:
    each_byte_changed(
        build_batch([(T + at * spread, b"k", b"v", [("h", b"1")]) for at in range(66)])
    )()


def test_many_short_runs_are_left_to_a_thread() -> None:
    def alternating(runs: int) -> list[NewRecord]:
        return [(T, None, b"v" * (1 + at // 8 % 2), ()) for at in range(8 * runs)]

    assert not glance(alternating(2 * 260))
    assert glance(alternating(250))


def test_records_of_odd_sizes_are_read_one_by_one() -> None:
    rows: list[NewRecord] = [(T + at, None, bytes(at * 37 % 500), ()) for at in range(150)]
    data = build_batch(rows)
    assert not glance(rows)
    assert validated_max_timestamp(data[BATCH_OVERHEAD:], read_header(data)) == T + 149
    each = [encode_record(at, 0, b"k", bytes(at % 3)) for at in range(9)]
    for wrong in (each[:-1], [*each, each[-1]], [*each[1:], each[0]], [*each, b"\0"]):
        header = read_header(batch_of(b"".join(wrong), 9))
        assert validated_max_timestamp(b"".join(wrong), header) is None


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(T, None, b"v" * (at % 200), ()) for at in range(150)], id="short and long"),
        pytest.param([(T, b"k" * (at % 60), b"v" * 90, ()) for at in range(150)], id="keys"),
        pytest.param([(T + 9 * at, None, b"v" * (at % 90), ()) for at in range(150)], id="seconds"),
        pytest.param([(T - at, b"key", None, ()) for at in range(90)], id="falling, no values"),
        pytest.param(
            [(T, b"k", b"v" * at, [("h", b"1"), ("g", None)]) for at in range(99)], id="h"
        ),
        pytest.param([(T + at, b"k", b"v" * 8180 * at, ()) for at in range(4)], id="three bytes"),
        pytest.param(
            [(T, b"k" * 99, b"v" * at, [("h" * 80, b"1" * 80)]) for at in range(9)], id="l"
        ),
    ],
)
def test_odd_records_of_any_usual_shape_need_no_closer_look(rows: list[NewRecord]) -> None:
    data = build_batch(rows)
    header = read_header(data)
    assert greatest_delta_of(data[BATCH_OVERHEAD:], len(rows)) == (
        header.max_timestamp - header.base_timestamp
    )


def test_no_changed_byte_of_odd_records_is_overlooked() -> None:
    rows: list[NewRecord] = [
        (T + 5 * at, b"k" * (at % 3) or None, b"v" * (at * 7 % 9), [("h", b"1")] * (at % 2))
        for at in range(67)
    ]
    data = build_batch(rows)
    header = read_header(data)
    payload = data[BATCH_OVERHEAD:]
    assert greatest_delta_of(payload, 67) == 5 * 66
    for at in range(len(payload)):
        for flipped in (2, 0x80):
            changed = bytearray(payload)
            changed[at] ^= flipped
            latest = validated_max_timestamp(bytes(changed), header)
            if latest is not None:
                again = list(iter_records(data[:BATCH_OVERHEAD] + bytes(changed)))
                assert [row.offset for row in again] == list(range(67))
                assert latest == max(row.timestamp for row in again)


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 63])
@pytest.mark.parametrize(
    "value", [None, b"", b"v", b"v" * 63, b"v" * 64, b"v" * 8184, b"v" * 8185, b"v" * 900_000]
)
@pytest.mark.parametrize("delta", [0, -1, 63, -64])
def test_one_record_needs_no_closer_look(
    key: bytes | None, value: bytes | None, delta: int
) -> None:
    assert delta_of_one(encode_record(0, delta, key, value)) == delta


@pytest.mark.parametrize(
    ("key", "value", "size"),
    [
        (None, b"v" * 3, 0),
        (None, b"v" * 70, 0),
        (None, b"v" * 8184, 40),
        (b"k", b"v" * 70, 0),
        (None, None, 0),
        (b"", b"v" * 8200, 40),
    ],
)
def test_no_changed_byte_of_one_record_is_overlooked(
    key: bytes | None, value: bytes | None, size: int
) -> None:
    payload = encode_record(0, 3, key, value)
    data = batch_of(payload, 1)
    for at in range(min(len(payload), size or len(payload))):
        for byte in range(256):
            changed = payload[:at] + bytes((byte,)) + payload[at + 1 :]
            delta = delta_of_one(changed)
            if delta is not None:
                (again,) = iter_records(data[:BATCH_OVERHEAD] + changed)
                assert (again.offset, again.timestamp) == (0, T + delta)
    for cut in range(len(payload)):
        assert delta_of_one(payload[:cut]) is None
    assert delta_of_one(payload + b"\0") is None


def test_a_length_of_two_bytes_is_not_one_of_three_without_its_last() -> None:
    # 8,192 bytes behind the length, which has two bytes and says that there are none.
    payload = bytes((0x80, 0, 0, 0, 0, 1)) + bytes((0xF2, 0x7F)) + bytes(8186)
    assert len(payload) == 8194
    assert delta_of_one(payload) is None


def test_a_length_of_four_bytes_is_not_taken_for_one_of_three() -> None:
    # The first three bytes say the right size, if the third one's high bit counts.
    value = 1 << 20
    fields = bytes((0, 0, 0, 1)) + encode_varint(value - 1) + bytes(value - 1) + b"\0"
    length = 2 * len(fields)
    payload = bytes((length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14)) + fields
    assert payload[2] > 0x7F
    assert delta_of_one(payload) is None


NOTHING = {
    "gzip members": (CompressionType.GZIP, b"", compress(CompressionType.GZIP, b"")),
    "snappy blocks": (
        CompressionType.SNAPPY,
        XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1),
        bytes((0, 0, 0, 1, 0)),
    ),
    "zstd frames": (CompressionType.ZSTD, b"", compress(CompressionType.ZSTD, b"")),
    "zstd frames that are skipped": (CompressionType.ZSTD, b"", b"\x50\x2a\x4d\x18" + bytes(4)),
    "zstd blocks": (CompressionType.ZSTD, b"\x28\xb5\x2f\xfd\x00\x00", bytes(3)),
}
"""Codec, the beginning of a stream, and a piece of it that holds no bytes."""


@pytest.mark.parametrize("what", NOTHING)
def test_thousands_of_pieces_that_hold_nothing_are_work(what: str) -> None:
    codec, begin, piece = NOTHING[what]
    data = assemble_batch(
        begin + piece * 50_000,
        base_offset=0,
        last_offset_delta=0,
        record_count=1,
        attributes=codec,
        base_timestamp=T,
        max_timestamp=T,
    )
    with pytest.raises(EffortSpent):
        check(data, effort=Effort(bytes=128 * 1024))
