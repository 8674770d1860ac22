"""A compressed batch opened piece by piece: a hundred bytes of zstd may stand for gigabytes.

`compression.decompress` gives all plain bytes at once, and is for what is known to be small. Who
opens what a client has chosen iterates over pieces, keeps one of them at a time, and stops when it
has what it came for.

A piece has at most `PIECE` bytes. Raw snappy is the exception: its format has no stream, so that a
block is one piece, of at most `MAX_BLOCK` bytes.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from protocol.records.compression import (
    XERIAL_HEADER_SIZE,
    XERIAL_MAGIC,
    BytesLike,
    CompressionType,
    mend_lz4_header,
)
from protocol.records.errors import InvalidRecord, UnsupportedCompression

PIECE: Final = 256 * 1024
"""Small enough for the processor's cache, large enough that a call per piece does not matter."""
MAX_BLOCK: Final = 128 << 20
"""Of raw snappy. Producers cut their streams into 32 KiB blocks, or send a batch as one block."""
_INPUT: Final = 64 * 1024
"""Compressed bytes handed to a library at a time: what it does not use yet it copies."""


def inflate(
    codec: int, data: BytesLike, *, magic: int = 2, piece: int = PIECE
) -> Iterator[bytes | memoryview]:
    """The plain bytes behind `data`, in order, in pieces of at most `piece` bytes.

    Raises InvalidRecord when `data` is not what the codec says, at the piece where that shows, and
    UnsupportedCompression for an unknown codec. A stream of zstd that is cut off just ends.
    """
    view = memoryview(data)
    if codec == CompressionType.NONE:
        return (view[at : at + piece] for at in range(0, len(view), piece))
    if codec == CompressionType.GZIP:
        return _gzip(view, piece)
    if codec == CompressionType.SNAPPY:
        return _snappy(view)
    if codec == CompressionType.LZ4:
        return _lz4(view if magic else memoryview(mend_lz4_header(view)), piece)
    if codec == CompressionType.ZSTD:
        return _zstd(view, piece)
    raise UnsupportedCompression(f"Unknown compression type id: {codec}")


def _failed(codec: str, why: object) -> InvalidRecord:
    return InvalidRecord(f"Failed to decompress record stream ({codec}: {why})")


def _gzip(data: memoryview, piece: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    at, rest = 0, b""
    while True:
        if not rest and not stream.eof:
            rest = bytes(data[at : at + _INPUT])
            at += len(rest)
        try:
            plain = stream.decompress(rest, piece)
        except zlib.error as error:
            raise _failed("gzip", error) from None
        if plain:
            yield plain
        if stream.eof:
            rest = stream.unused_data
            if not rest and at >= len(data):
                return
            stream = zlib.decompressobj(16 + zlib.MAX_WBITS)  # members may follow each other
            continue
        rest = stream.unconsumed_tail
        if not rest and not plain and at >= len(data):
            raise _failed("gzip", "premature end of stream")


def _snappy(data: memoryview) -> Iterator[bytes]:
    magic_size = len(XERIAL_MAGIC)
    if bytes(data[:magic_size]) != XERIAL_MAGIC:
        yield _snappy_block(data)
        return
    at, end = XERIAL_HEADER_SIZE, len(data)
    if end < at:
        raise _failed("snappy", "premature end of header")
    while at < end:
        if bytes(data[at : at + magic_size]) == XERIAL_MAGIC:
            at += XERIAL_HEADER_SIZE  # streams may be concatenated (snappy-java 1.1.2+)
            continue
        if end - at < 4:
            raise _failed("snappy", "premature end of block length")
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if not 0 <= size <= end - at:
            raise _failed("snappy", "block longer than the stream")
        yield _snappy_block(data[at : at + size])
        at += size


def _snappy_block(block: memoryview) -> bytes:
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > MAX_BLOCK:
            raise InvalidRecord(f"A snappy block inflates to more than {MAX_BLOCK} bytes")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _failed("snappy", error) from None


def _lz4(data: memoryview, piece: int) -> Iterator[bytes]:
    from lz4 import frame

    stream = frame.LZ4FrameDecompressor()
    at, rest = 0, b""
    while True:
        if stream.needs_input and not rest:
            rest = bytes(data[at : at + _INPUT])
            at += len(rest)
            if not rest:
                raise _failed("lz4", "premature end of stream")
        try:
            plain: bytes = stream.decompress(rest, max_length=piece)
        except (RuntimeError, EOFError, ValueError) as error:
            raise _failed("lz4", error) from None
        rest = b""
        if plain:
            yield plain
        if stream.eof:
            rest = stream.unused_data or b""
            if not rest and at >= len(data):
                return
            stream = frame.LZ4FrameDecompressor()


def _zstd(data: memoryview, piece: int) -> Iterator[bytes]:
    import zstandard

    stream = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    while True:
        try:
            plain = stream.read(piece)
        except zstandard.ZstdError as error:
            raise _failed("zstd", error) from None
        if not plain:
            return
        yield plain
