"""The codecs: round trips, the libraries' other dialects, damage and bombs."""

import contextlib
import gzip
import random
import struct

import lz4.frame
import pytest
import snappy as python_snappy
import zstandard

from protocol.records.compression import CompressionType, compress
from protocol.records.errors import InvalidRecord, UnsupportedCompression
from protocol.records.inflating import decompress

CODECS = list(CompressionType)
REAL = CODECS[1:]
SIZES = [0, 1, 5, 1000, 32 * 1024, 32 * 1024 + 1, 200_000]


def content(size: int) -> bytes:
    rng = random.Random(size)
    return (rng.randbytes(min(size, 700)) * (size // 700 + 1))[:size]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", SIZES)
def test_what_goes_in_comes_out(codec: CompressionType, size: int) -> None:
    data = content(size)
    packed = compress(codec, memoryview(data))
    assert decompress(codec, memoryview(packed)) == data
    assert decompress(codec, bytearray(packed), max_size=size) == data
    if codec is not CompressionType.ZSTD:
        assert decompress(codec, compress(codec, data, magic=0), magic=0) == data


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_than_the_limit_is_inflated(codec: CompressionType) -> None:
    packed = compress(codec, content(200_000))
    for limit in (0, 1, 100, 65536, 199_999):
        with pytest.raises(InvalidRecord, match="more than"):
            decompress(codec, packed, max_size=limit)


@pytest.mark.parametrize("codec", REAL)
def test_bombs_are_refused(codec: CompressionType) -> None:
    bomb = compress(codec, bytes(20 << 20))
    with pytest.raises(InvalidRecord, match="more than"):
        decompress(codec, bomb, max_size=1 << 20)


@pytest.mark.parametrize("codec", REAL)
def test_damage_is_an_invalid_record_and_nothing_else(codec: CompressionType) -> None:
    data = content(3000)
    packed = compress(codec, data)
    rng = random.Random(4)
    for cut in range(0, len(packed), 7):
        with contextlib.suppress(InvalidRecord):
            assert decompress(codec, packed[:cut], max_size=1 << 20) in (b"", data[:cut])
    for _ in range(400):
        broken = bytearray(packed)
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        with contextlib.suppress(InvalidRecord):
            decompress(codec, broken, max_size=1 << 20)
    for _ in range(100):
        with pytest.raises(InvalidRecord):
            decompress(codec, b"\xff" + rng.randbytes(40), max_size=1 << 20)


def test_gzip_of_another_writer_and_several_members() -> None:
    data = content(5000)
    assert decompress(CompressionType.GZIP, gzip.compress(data)) == data
    two = gzip.compress(data) + compress(CompressionType.GZIP, b"tail")
    assert decompress(CompressionType.GZIP, two) == data + b"tail"
    assert gzip.decompress(compress(CompressionType.GZIP, data, 9)) == data
    with pytest.raises(InvalidRecord):
        decompress(CompressionType.GZIP, gzip.compress(data)[:-4])


def test_s_fmt_5_snappy_is_written_in_xerial_frames_and_read_raw_too() -> None:
    data = content(100_000)
    framed = compress(CompressionType.SNAPPY, data)
    magic, version, compatible = struct.unpack_from(">8sii", framed)
    assert (magic, version, compatible) == (b"\x82SNAPPY\x00", 1, 1)
    at, blocks = 16, []
    while at < len(framed):
        (size,) = struct.unpack_from(">i", framed, at)
        blocks.append(python_snappy.decompress(framed[at + 4 : at + 4 + size]))
        at += 4 + size
    assert b"".join(blocks) == data
    assert {len(block) for block in blocks[:-1]} == {32 * 1024}
    assert decompress(CompressionType.SNAPPY, python_snappy.compress(data)) == data
    assert decompress(CompressionType.SNAPPY, framed + framed) == data + data


def test_s_fmt_5_lz4_frames_are_what_java_reads() -> None:
    packed = compress(CompressionType.LZ4, content(200_000))
    info = lz4.frame.get_frame_info(packed)
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert not info["block_linked"]
    assert not info["content_checksum"]
    assert not info["block_checksum"]
    assert info["content_size"] == 0


@pytest.mark.parametrize("size", [4, 5, 6, 7])
@pytest.mark.parametrize("store_size", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_lz4_frames_of_other_writers_are_read(size: int, store_size: bool, checksum: bool) -> None:
    data = content(200_000)
    frame = lz4.frame.compress(
        data,
        block_size=size,
        block_linked=False,
        store_size=store_size,
        content_checksum=checksum,
        block_checksum=checksum,
    )
    for magic in (0, 1, 2):
        assert decompress(CompressionType.LZ4, frame, magic=magic) == data
        assert decompress(CompressionType.LZ4, frame + frame, magic=magic) == data


def test_lz4_blocks_that_need_each_other_are_refused_as_kafka_does() -> None:
    frame = lz4.frame.compress(content(200_000), block_linked=True)
    with pytest.raises(InvalidRecord, match="independent"):
        decompress(CompressionType.LZ4, frame)


def test_lz4_of_format_0_has_the_old_header_checksum() -> None:
    new = compress(CompressionType.LZ4, b"x" * 100, magic=1)
    old = compress(CompressionType.LZ4, b"x" * 100, magic=0)
    assert old[:6] == new[:6]
    assert old[7:] == new[7:]
    assert (new[6], old[6]) == (0x82, 0x1A)  # the old one as Kafka writes it, see the golden files
    with pytest.raises(InvalidRecord):
        decompress(CompressionType.LZ4, old)


@pytest.mark.parametrize("size", [0, 10, 300, 70_000, 500_000])
def test_zstd_with_and_without_a_declared_size(size: int) -> None:
    data = content(size)
    declared = zstandard.ZstdCompressor(write_content_size=True).compress(data)
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    undeclared = stream.compress(data) + stream.flush()
    assert decompress(CompressionType.ZSTD, declared) == data
    assert decompress(CompressionType.ZSTD, undeclared) == data
    assert decompress(CompressionType.ZSTD, undeclared, max_size=size) == data
    assert decompress(CompressionType.ZSTD, declared + undeclared) == data + data
    assert (
        zstandard.ZstdDecompressor()
        .decompressobj()
        .decompress(compress(CompressionType.ZSTD, data))
        == data
    )


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (CompressionType.GZIP, (-1, 1, 9)),
        (CompressionType.LZ4, (1, 9, 17)),
        (CompressionType.ZSTD, (-5, 1, 3, 22)),
    ],
)
def test_every_level_of_the_topic_config_works(
    codec: CompressionType, levels: tuple[int, ...]
) -> None:
    data = content(20_000)
    for level in levels:
        assert decompress(codec, compress(codec, data, level)) == data


def test_names_and_ids() -> None:
    assert [CompressionType.name_of(i) for i in range(6)] == [
        *("none", "gzip", "snappy", "lz4", "zstd", "5")
    ]
    assert CompressionType.for_name("zstd") is CompressionType.ZSTD
    assert CompressionType.for_id(2) is CompressionType.SNAPPY
    with pytest.raises(UnsupportedCompression):
        CompressionType.for_name("producer")
    with pytest.raises(UnsupportedCompression):
        CompressionType.for_id(7)
    with pytest.raises(UnsupportedCompression):
        decompress(6, b"")
    with pytest.raises(UnsupportedCompression):
        compress(CompressionType.ZSTD, b"x", magic=1)
