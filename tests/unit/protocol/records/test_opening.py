"""Batches opened piece by piece: the same records, and never all of them in memory."""

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records import opening
from protocol.records.batch import read_header
from protocol.records.builder import assemble_batch, build_batch
from protocol.records.chain import record_starts, whole_records
from protocol.records.compression import CompressionType, compress
from protocol.records.errors import InvalidRecord, UnsupportedCompression
from protocol.records.inflate import PIECE, inflate
from protocol.records.opening import record_chunks

PACKED = [codec for codec in CompressionType if codec]
SMALL = b"\x0c\x00\x00\x00\x01\x01\x00"  # a record of seven bytes: nothing in it


def batch_of(payload: bytes, count: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    return assemble_batch(
        compress(codec, payload),
        base_offset=0,
        last_offset_delta=max(count - 1, 0),
        record_count=count,
        base_timestamp=0,
        max_timestamp=0,
        attributes=int(codec),
    )


def records_in(batch: bytes, piece: int = PIECE) -> Iterator[bytes]:
    for chunk in record_chunks(batch, 0, read_header(batch), piece=piece):
        for at in range(len(chunk.starts) - 1):
            yield chunk.payload[chunk.starts[at] : chunk.starts[at + 1]]


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("data", [b"abc", bytes(range(256)) * 5000], ids=["short", "long"])
def test_pieces_are_the_whole_and_small(codec: CompressionType, data: bytes) -> None:
    pieces = [bytes(piece) for piece in inflate(codec, compress(codec, data))]
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= PIECE


@pytest.mark.parametrize("codec", PACKED)
def test_streams_that_follow_each_other_are_one(codec: CompressionType) -> None:
    packed = compress(codec, b"one") + compress(codec, b"two")
    assert b"".join(inflate(codec, packed)) == b"onetwo"


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("bad", [b"junk" * 9, b"\x28\xb5\x2f\xfd" + b"\xff" * 40], ids=["a", "b"])
def test_what_the_codec_does_not_know_is_invalid(codec: CompressionType, bad: bytes) -> None:
    with pytest.raises(InvalidRecord):
        list(inflate(codec, bad))


@pytest.mark.parametrize("codec", PACKED)
def test_a_stream_that_is_cut_off_holds_no_batch(codec: CompressionType) -> None:
    payload = build_batch([(0, None, bytes([i % 251]) * 40, ()) for i in range(3000)])[61:]
    packed = compress(codec, payload)
    batch = assemble_batch(
        packed[: len(packed) // 2],
        base_offset=0,
        last_offset_delta=2999,
        record_count=3000,
        base_timestamp=0,
        max_timestamp=0,
        attributes=int(codec),
    )
    with pytest.raises(InvalidRecord):
        list(records_in(batch))


def test_an_unknown_codec_is_unsupported() -> None:
    with pytest.raises(UnsupportedCompression):
        list(inflate(6, b"x"))


@given(
    sizes=st.lists(st.sampled_from([0, 1, 50, 63, 64, 120, 8_000, 9_000]), min_size=1, max_size=40),
    run=st.integers(0, 30),
    piece=st.integers(1, 500),
    codec=st.sampled_from([CompressionType.NONE, CompressionType.GZIP]),
)
def test_chunks_hold_every_record_once(
    sizes: list[int], run: int, piece: int, codec: CompressionType
) -> None:
    rows = [(0, None, bytes(size), ()) for size in sizes + [7] * run]
    payload = build_batch(rows)[61:]
    starts = record_starts(payload, len(rows))
    wanted = [payload[starts[at] : starts[at + 1]] for at in range(len(rows))]
    assert list(records_in(batch_of(payload, len(rows), codec), piece)) == wanted


@given(st.binary(max_size=60), st.integers(0, 9))
def test_whole_records_never_reach_beyond_the_piece(data: bytes, most: int) -> None:
    try:
        starts, needed = whole_records(data, most)
    except InvalidRecord:
        return
    assert len(starts) - 1 <= most
    assert starts[-1] <= len(data)
    assert starts == sorted(starts)
    assert not needed or needed > len(data) - starts[-1]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
@pytest.mark.parametrize("claimed", [2, 4], ids=["fewer", "more"])
def test_a_count_that_lies_is_invalid(codec: CompressionType, claimed: int) -> None:
    with pytest.raises(InvalidRecord):
        list(records_in(batch_of(SMALL * 3, claimed, codec)))


def test_no_records_take_no_bytes() -> None:
    assert list(records_in(batch_of(b"", 0))) == []


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_a_large_batch_takes_the_memory_of_a_chunk(codec: CompressionType) -> None:
    count = 300
    batch = build_batch([(0, None, bytes(100_000), ())] * count, codec=codec)
    header = read_header(batch)
    tracemalloc.start()
    try:
        found = sum(len(chunk.starts) - 1 for chunk in record_chunks(batch, 0, header))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == count
    assert peak < 4 << 20, peak  # all the records have 30 MB


def test_limits_of_a_record_and_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    large = build_batch([(0, None, bytes(3000), ())], codec=CompressionType.GZIP)
    many = build_batch([(0, None, bytes(300), ())] * 10, codec=CompressionType.GZIP)
    monkeypatch.setattr(opening, "MAX_RECORD", 2000)
    with pytest.raises(InvalidRecord, match="larger than 2000"):
        list(record_chunks(large, 0, read_header(large), piece=1000))
    monkeypatch.setattr(opening, "MAX_OPENED", 2000)
    with pytest.raises(InvalidRecord, match="inflates to more than 2000"):
        list(record_chunks(many, 0, read_header(many), piece=1000))
