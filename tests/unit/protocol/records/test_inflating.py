"""Streams in pieces: the same bytes as at once, never much more than a piece in memory."""

import os
import tracemalloc

import pytest

from protocol.records.compression import CompressionType, compress
from protocol.records.deflating import OutputFull, deflate
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import InvalidRecord, UnsupportedCompression
from protocol.records.inflating import inflate

CODECS = list(CompressionType)
COMPRESSED = [codec for codec in CODECS if codec]
BLOCK = 128 * 1024
CONTENTS = [b"", b"a", os.urandom(100_000), bytes(700_000), os.urandom(1000) * 300]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("chunk", [100, 1 << 20])
def test_pieces_are_the_whole(codec: CompressionType, chunk: int) -> None:
    for content in CONTENTS:
        packed = compress(codec, content)
        assert b"".join(inflate(codec, packed, chunk=chunk)) == content


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.ZSTD])
def test_streams_may_follow_each_other(codec: CompressionType) -> None:
    packed = compress(codec, b"one") + compress(codec, b"two")
    assert b"".join(inflate(codec, packed)) == b"onetwo"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_ends_early_or_is_garbage_is_invalid(codec: CompressionType) -> None:
    packed = compress(codec, os.urandom(1000) * 300)
    for wrong in (packed[:-1], packed[: len(packed) // 2], packed[:3], b"", b"garbage" * 9):
        with pytest.raises(InvalidRecord):
            b"".join(inflate(codec, wrong))


def test_an_unknown_codec() -> None:
    with pytest.raises(UnsupportedCompression):
        inflate(5, b"")


@pytest.mark.parametrize("codec", COMPRESSED)
def test_pieces_are_small_however_much_they_stand_for(codec: CompressionType) -> None:
    packed = compress(codec, bytes(30 << 20))
    tracemalloc.start()
    try:
        sizes = [len(piece) for piece in inflate(codec, packed, chunk=BLOCK)]
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 30 << 20
    assert max(sizes) <= 2 * BLOCK


@pytest.mark.parametrize("codec", CODECS)
def test_more_than_allowed_ends_where_it_shows(codec: CompressionType) -> None:
    pieces = inflate(codec, compress(codec, bytes(2 << 20)), chunk=BLOCK, max_size=1 << 20)
    seen = 0
    with pytest.raises(InvalidRecord, match="inflates to more than"):
        for piece in pieces:
            seen += len(piece)
    assert seen <= 1 << 20


def test_a_snappy_block_cannot_claim_what_the_format_cannot_hold() -> None:
    claim = b"\xff\xff\xff\x7f" + bytes(20)  # 256 MB
    with pytest.raises(InvalidRecord):
        b"".join(inflate(CompressionType.SNAPPY, claim))


def test_zstd_frames_of_all_kinds() -> None:
    import zstandard

    content = os.urandom(300_000) + bytes(300_000)
    skippable = b"\x53\x2a\x4d\x18\x05\0\0\0hello"
    for options in ({"write_checksum": True}, {"write_content_size": False}, {"level": 19}):
        packed = zstandard.ZstdCompressor(**options).compress(content)
        assert b"".join(inflate(CompressionType.ZSTD, skippable + packed, chunk=1000)) == content
        with pytest.raises(InvalidRecord):
            b"".join(inflate(CompressionType.ZSTD, packed[:-1]))


@pytest.mark.parametrize("codec", CODECS)
def test_small_data_is_compressed_as_ever_and_large_in_pieces(codec: CompressionType) -> None:
    assert deflate(codec, [b"abc", b"def"], most=1000) == compress(codec, b"abcdef")
    large = [os.urandom(1000) * 700] * 4
    packed = deflate(codec, iter(large), most=8 << 20)
    assert b"".join(inflate(codec, packed)) == b"".join(large)


@pytest.mark.parametrize("codec", CODECS)
def test_compressing_ends_when_the_result_is_too_large(codec: CompressionType) -> None:
    taken = 0

    def endless():  # type: ignore[no-untyped-def]
        nonlocal taken
        while True:
            taken += 1
            yield os.urandom(100_000)

    with pytest.raises(OutputFull):
        deflate(codec, endless(), most=1_000_000)
    assert taken < 40


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_stream_of_more_bytes_than_the_effort_is_not_begun(codec: CompressionType) -> None:
    packed = compress(codec, b"")
    packed += packed
    with pytest.raises(EffortSpent):
        next(inflate(codec, packed, effort=Effort(bytes=len(packed) - 1)))
    assert b"".join(inflate(codec, packed, effort=Effort(bytes=len(packed) + 4096))) == b""
