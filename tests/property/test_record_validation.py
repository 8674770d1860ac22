"""A batch is accepted if, and only if, the plain reading of record after record accepts it."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from protocol.records.batch import BATCH_OVERHEAD, read_header
from protocol.records.builder import assemble_batch, encode_record
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import InvalidRecord, RecordsError
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch, validated_max_timestamp
from protocol.records.varint import encode_varint

RULES = RecordRules()
contents = st.sampled_from([None, b"", b"k" * 5, b"v" * 70, b"w" * 300])
headers = st.sampled_from([[], [("a", b"1")], [("a", None), ("bb", b"2")]])
layouts = st.tuples(contents, contents, headers)
deltas = st.sampled_from([0, 0, 0, 1, 63, 64, -1, -65, 8191, 8192, 10**6, 2**50])
changes = st.lists(st.tuples(st.integers(0, 2**16), st.integers(1, 255)), max_size=2)


@st.composite
def odd_payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """Draw records that are read one by one, because they differ; most are sound. Any varint may
    take more bytes than it has to."""
    sizes = st.sampled_from([-1, 0, 1, 5, 6, 40, 55, 56, 57, 58, 63, 64, 300, 8185, 8192])
    few = st.lists(
        st.tuples(sizes, sizes, st.sampled_from([0, 0, 1, 2, 9])), min_size=1, max_size=9
    )
    rows = draw(few)
    rows *= draw(st.sampled_from([1, 1, 12]))
    stretched = draw(st.sampled_from([-1, -1, *range(7)]))
    by = draw(st.integers(1, 9))
    delta, rise = draw(deltas), draw(st.sampled_from([0, 1, -1, 30]))
    pieces: list[bytes] = []
    for index, (key, value, extra) in enumerate(rows):
        varints = [delta + index * rise, index, key, value, extra]
        if draw(st.integers(0, 60)) == 0:
            varints[draw(st.integers(0, 4))] = draw(st.sampled_from([-2, -65, 7, 2**31 - 1]))
        fields = [
            stretch(encode_varint(each), by * (at == stretched)) for at, each in enumerate(varints)
        ]
        body = b"\0" + fields[0] + fields[1] + fields[2] + b"k" * key + fields[3] + b"v" * value
        header = stretch(b"\2", by * (stretched == 5)) + b"h" + (b"\1", b"\4v\0")[index % 2]
        body += fields[4] + header * extra
        pieces.append(stretch(encode_varint(len(body)), by * (stretched == 6)) + body)
    payload = bytearray(b"".join(pieces))
    for at, flipped in draw(changes):
        payload[at % len(payload)] ^= flipped
    return bytes(payload), len(pieces)


def stretch(varint: bytes, by: int) -> bytes:
    """The same number in more bytes."""
    if not by:
        return varint
    return varint[:-1] + bytes((varint[-1] | 0x80,)) + b"\x80" * (by - 1) + b"\0"


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records, mostly in runs of one layout, mostly sound; and how many are claimed."""
    pieces: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        key, value, extra = draw(layouts)
        delta, step = draw(deltas), draw(st.sampled_from([0, 0, 1, 7]))
        pieces.extend(
            encode_record(len(pieces) + at, delta + at * step, key, value, extra)
            for at in range(draw(st.sampled_from([1, 2, 9, 70])))
        )
        if draw(st.booleans()):
            break
    count = len(pieces)
    payload = bytearray(b"".join(pieces))
    for at, flipped in draw(changes):
        payload[at % len(payload)] ^= flipped
    ending = draw(st.sampled_from([None, None, None, "cut", "longer", "more", "fewer"]))
    if ending == "cut":
        del payload[-1:]
    elif ending == "longer":
        payload += b"\0"
    elif ending is not None:
        count += 1 if ending == "more" else -1
    return bytes(payload), max(count, 1)


def reference(data: bytes) -> int | None:
    """The greatest timestamp; None for a batch that may not be stored."""
    try:
        records = list(iter_records(data))
    except (RecordsError, IndexError):  # a field that ends behind the batch
        return None
    if [record.offset for record in records] != list(range(len(records))):
        return None
    return max(-1, *(record.timestamp for record in records))


@settings(max_examples=120, deadline=None)
@given(
    payloads() | odd_payloads(),
    st.sampled_from([0, 1, 4]),
    st.sampled_from([0, 1_700_000_000_000, 2**63 - 5]),
)
@example((b"\x10\0\x80\x80\x01\0\x01\x01\0", 1), 0, 0)  # short, late, and the first of its batch
@example((b"\x0c\0\x0a\0\1\1\0", 1), 0, 2**63 - 5)  # its time is beyond 64 bits
@example((b"\x0c\0\x01\0\1\1\0", 1), 0, -(2**63))  # before them
@example((b"".join(encode_record(i, 0, b"k", b"v") for i in range(9)), 9), 0, -5)  # all undated
def test_a_batch_is_accepted_iff_the_reference_reads_it(
    made: tuple[bytes, int], codec: int, base: int
) -> None:
    payload, count = made
    expected = None
    for claimed in (-1, base, None):  # the header's word never counts; None: it is right
        data = assemble_batch(
            compress(CompressionType(codec), payload),
            base_offset=0,
            last_offset_delta=count - 1,
            record_count=count,
            base_timestamp=base,
            max_timestamp=(base if expected is None else expected) if claimed is None else claimed,
            attributes=codec,
        )
        expected = reference(data)
        header = read_header(data)
        try:
            found = check_batch(data, 0, header, RULES).max_timestamp
        except InvalidRecord:
            assert expected is None
        else:
            assert found == expected
        if not codec:
            latest = validated_max_timestamp(data[BATCH_OVERHEAD:], header)
            assert latest is None or latest == expected
