"""Records for any content: round trips, and both ways of scanning agree."""

import contextlib
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records import scan_numpy, scan_python
from protocol.records.batch import BATCH_OVERHEAD, iter_batches, read_header, verify_crc
from protocol.records.builder import build_batch
from protocol.records.chain import record_starts
from protocol.records.compression import CompressionType
from protocol.records.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from protocol.records.message_set import build_message_set
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch
from protocol.records.search import first_at_or_after
from protocol.records.varint import encode_varint, read_varlong
from tests.support.message_sets import records_in, up_converted

DECLARED = (CorruptBatch, InvalidRecord, UnsupportedCompression)
LIMIT = 1 << 20

timestamps = st.integers(-1, 2**62)
contents = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=20)
records = st.tuples(timestamps, contents, contents, st.just([]) | headers)
batches = st.lists(records, min_size=1, max_size=40)
codecs = st.sampled_from(list(CompressionType))


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_varints_come_back(value: int, tail: bytes) -> None:
    encoded = encode_varint(value)
    assert read_varlong(encoded + tail, 0) == (value, len(encoded))


@settings(max_examples=50, deadline=None)
@given(batches, codecs, st.integers(0, 2**40))
def test_batches_come_back(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: CompressionType,
    base: int,
) -> None:
    data = build_batch(rows, codec=codec, base_offset=base)
    header = read_header(data)
    assert verify_crc(data, 0, header)
    assert [tuple(record)[:5] for record in iter_records(data)] == [
        (base + i, *row) for i, row in enumerate(rows)
    ]
    stamps = [row[0] for row in rows]
    findings = check_batch(data, 0, header, RecordRules(need_keys=True, least_timestamp=500))
    assert findings.keyless == tuple(i for i, row in enumerate(rows) if row[1] is None)
    assert findings.outside == tuple(i for i, at in enumerate(stamps) if -1 < at < 500)
    assert findings.max_timestamp == header.max_timestamp == max(stamps)


@settings(max_examples=50, deadline=None)
@given(batches, st.sampled_from(list(CompressionType)[:4]), st.sampled_from([0, 1]))
def test_message_sets_come_back_and_up(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: CompressionType,
    magic: int,
) -> None:
    data = build_message_set(
        [(i, stamp, key, value) for i, (stamp, key, value, _) in enumerate(rows)],
        magic=magic,
        codec=codec,
    )
    expected = [(stamp if magic else -1, key, value) for stamp, key, value, _ in rows]
    assert [(r.timestamp, r.key, r.value) for r in records_in(data)] == expected
    batch = up_converted(data)
    assert [(r.timestamp, r.key, r.value) for r in iter_records(batch)] == expected


@settings(max_examples=50, deadline=None)
@given(batches, st.data())
def test_both_scans_say_the_same_of_damaged_records(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    data: st.DataObject,
) -> None:
    payload = bytearray(build_batch(rows)[BATCH_OVERHEAD:])
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(payload) - 1), st.integers(0, 255)), max_size=3)
    ):
        payload[at] = byte
    try:
        starts = record_starts(bytes(payload), len(rows))
    except InvalidRecord:
        return
    answers = []
    for read in (scan_python.read_fields, scan_numpy.read_fields):
        try:
            fields = read(bytes(payload), starts, 1000)
        except InvalidRecord:
            answers.append(None)
        else:
            answers.append(
                (
                    fields.time_range(),
                    fields.keyless(),
                    fields.outside(0, 2**40),
                    fields.first_out_of_sequence(),
                    fields.first_from(500, 3),
                )
            )
    assert answers[0] == answers[1]


@settings(max_examples=50, deadline=None)
@given(batches, codecs, st.sampled_from([0, 1, 2]), st.data())
def test_damage_raises_declared_errors_only(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: CompressionType,
    magic: int,
    data: st.DataObject,
) -> None:
    if magic == 2:
        sound = build_batch(rows, codec=codec)
    else:
        codec = min(codec, CompressionType.LZ4)
        sound = build_message_set(
            [(i, stamp, key, value) for i, (stamp, key, value, _) in enumerate(rows)],
            magic=magic,
            codec=codec,
        )
    damaged = bytearray(sound)
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(sound) - 1), st.integers(0, 255)), max_size=4)
    ):
        damaged[at] = byte
    if data.draw(st.booleans()):
        # The damage that hurts: the count stays believable, the size fits.
        struct.pack_into(">i", damaged, 8, len(damaged) - 12)
    read_all(bytes(damaged[: data.draw(st.integers(0, len(sound)))]))
    read_all(bytes(damaged))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_garbage_raises_declared_errors_only(garbage: bytes) -> None:
    read_all(garbage)


def read_all(data: bytes) -> None:
    for magic in (None, 0, 1, 2):
        candidate = bytearray(data)
        if magic is not None and len(candidate) > 16:
            candidate[16] = magic
        try:
            for pos, header in iter_batches(candidate):
                verify_crc(candidate, pos, header)
        except DECLARED:
            pass
        with contextlib.suppress(DECLARED):
            list(iter_records(candidate, max_size=LIMIT))
        try:
            header = read_header(candidate)
            first_at_or_after(candidate, 0, 5, max_size=LIMIT)
            if header.magic == 2:
                check_batch(candidate, 0, header, RecordRules(need_keys=True), max_size=LIMIT)
        except DECLARED:
            pass
