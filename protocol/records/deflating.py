"""Compressing data that comes in pieces, up to a greatest size of the result.

Small data is compressed in one call by `compression.compress` (as Kafka's clients do, byte for
byte); larger data by the same libraries' streams, which stop as soon as the result is too large,
however many pieces are left.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from protocol.records.compression import (
    ZSTD_DEFAULT_LEVEL,
    BytesLike,
    CompressionType,
    compress,
    lz4_level,
    snappy_frame,
    zstd_library,
)

_AT_ONCE: Final = 1 << 20
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


class OutputFull(Exception):
    """The result is larger than allowed; `size` is how many bytes it had when that showed."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def deflate(
    codec: CompressionType,
    pieces: Iterable[BytesLike],
    level: int | None = None,
    *,
    most: int,
) -> bytes:
    """Compress the concatenated pieces with `codec` (see `compress`), to at most `most` bytes.

    Raises OutputFull, and what `pieces` raises.
    """
    first: list[BytesLike] = []
    size = 0
    source = iter(pieces)
    for piece in source:
        first.append(piece)
        size += len(piece)
        if size > _AT_ONCE:
            return _join(_streamed(codec, chain(first, source), level), most)
    return _join((compress(codec, b"".join(first), level),), most)


def _join(pieces: Iterable[bytes], most: int) -> bytes:
    done: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise OutputFull(size)
        done.append(piece)
    return b"".join(done)


def _streamed(
    codec: CompressionType, pieces: Iterable[BytesLike], level: int | None
) -> Iterator[bytes]:
    if codec is CompressionType.NONE:
        return (bytes(piece) for piece in pieces)
    if codec is CompressionType.SNAPPY:
        return snappy_frame(pieces)
    if codec is CompressionType.GZIP:
        gzip = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
        return _run(gzip.compress, gzip.flush, pieces)
    if codec is CompressionType.LZ4:
        return _lz4(pieces, level)
    zstd = zstd_library().ZstdCompressor(ZSTD_DEFAULT_LEVEL if level is None else level)
    return _run(zstd.compress, zstd.flush, pieces)


def _run(
    compress_piece: Callable[[Any], bytes],
    flush: Callable[[], bytes],
    pieces: Iterable[BytesLike],
) -> Iterator[bytes]:
    for piece in pieces:
        yield compress_piece(piece)
    yield flush()


def _lz4(pieces: Iterable[BytesLike], level: int | None) -> Iterator[bytes]:
    from lz4 import frame

    lz4 = frame.LZ4FrameCompressor(
        compression_level=lz4_level(level),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
    )
    yield lz4.begin()
    for piece in pieces:
        yield lz4.compress(bytes(piece))
    yield lz4.flush()
