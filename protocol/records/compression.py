"""The codecs of record batches, and compressing with them as Kafka's Java client and broker do.

* gzip    one member with the header that Java (16+) writes; zlib from the standard library.
* snappy  snappy-java's ("xerial") frame of 32 KiB blocks.
* lz4     LZ4 frame, independent 64 KiB blocks, no content size, no checksums beside the header's.
          Magic 0 carries the header checksum of the first clients, computed over the frame magic
          as well (KAFKA-3160).
* zstd    plain frames.

This module compresses data at once; `deflating` compresses it in pieces, `inflating` decompresses.
Libraries are imported at first use: a broker that stores batches as they come starts without them.
"""

import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType

from protocol.records.errors import UnsupportedCompression

BytesLike = bytes | bytearray | memoryview

# Bytes: far above what a 100 MB request (socket.request.max.bytes) inflates to in practice, far
# below a decompression bomb.
MAX_DECOMPRESSED_SIZE: Final = 256 << 20

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = struct.Struct(">8sii")  # magic, version, compatible version
_XERIAL_BLOCK: Final = 32 * 1024
INT32: Final = struct.Struct(">i")
# deflate, no flags, mtime 0, no extra flags, OS 255 (unknown): GZIPOutputStream since Java 16.
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_GZIP_TRAILER: Final = struct.Struct("<II")
_LZ4_DEFAULT_LEVEL: Final = 9
ZSTD_DEFAULT_LEVEL: Final = 3


class CompressionType(IntEnum):
    """Codec id in bits 0-2 of the batch attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def name_of(cls, codec: int) -> str:
        """The name in topic configs (`none`, `gzip` …), or the number of an unknown codec."""
        return cls(codec).name.lower() if codec in _KNOWN else str(codec)

    @classmethod
    def for_name(cls, name: str) -> "CompressionType":
        """The codec of a config value. Raises UnsupportedCompression for an unknown name."""
        found = _BY_NAME.get(name)
        if found is None:
            raise UnsupportedCompression(f"Unknown compression name: {name}")
        return found

    @classmethod
    def for_id(cls, codec: int) -> "CompressionType":
        """The codec of an id in batch attributes. Raises UnsupportedCompression for 5 to 7."""
        if codec not in _KNOWN:
            raise UnsupportedCompression(f"Unknown compression type id: {codec}")
        return cls(codec)


_KNOWN: Final = frozenset(int(codec) for codec in CompressionType)
_BY_NAME: Final = {codec.name.lower(): codec for codec in CompressionType}


def compress(
    codec: CompressionType, data: BytesLike, level: int | None = None, *, magic: int = 2
) -> bytes:
    """`data` in `codec`'s frame.

    `level` is that of `compression.<codec>.level`; with None it is Kafka's default.
    Raises UnsupportedCompression for zstd below magic 2 (KIP-110 forbids it).
    """
    if codec == CompressionType.NONE:
        return bytes(data)
    if codec == CompressionType.GZIP:
        return _gzip(data, -1 if level is None else level)
    if codec == CompressionType.SNAPPY:
        return b"".join(snappy_frame((data,)))
    if codec == CompressionType.LZ4:
        return _lz4(data, level, magic)
    if magic < 2:
        raise UnsupportedCompression("zstd needs message format version 2")
    return _zstd(data, ZSTD_DEFAULT_LEVEL if level is None else level)


# ---- gzip


def _gzip(data: BytesLike, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, deflate.compress(data), deflate.flush(), trailer))


# ---- snappy


def snappy_frame(pieces: Iterable[BytesLike]) -> Iterator[bytes]:
    """snappy-java's frame of the pieces, one after the other: its header, then block by block."""
    from cramjam import snappy

    yield XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1)
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _XERIAL_BLOCK):
            block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
            yield INT32.pack(len(block)) + block


# ---- lz4


def lz4_level(level: int | None) -> int:
    """The library's level for Kafka's (None: its default).

    Kafka's level 9 means "the fast compressor"; every other one is high compression.
    """
    return 0 if level in (None, _LZ4_DEFAULT_LEVEL) else max(3, min(level or 0, 12))


def _lz4(data: BytesLike, level: int | None, magic: int) -> bytes:
    from lz4 import frame

    out: bytes = frame.compress(
        data,
        compression_level=lz4_level(level),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return out if magic else out[:6] + lz4_header_checksum(out[:6]) + out[7:]


def lz4_header_checksum(descriptor: BytesLike) -> bytes:
    """The checksum byte of a frame's descriptor, which in format 0 includes the frame magic."""
    from xxhash import xxh32_intdigest

    return bytes(((xxh32_intdigest(descriptor) >> 8) & 0xFF,))


# ---- zstd

_SMALL: Final = 64 * 1024
ZSTD_MODULE: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def zstd_library() -> "ModuleType":
    """The standard library's zstd module; before Python 3.14, which has it, its backport."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _zstd(data: BytesLike, level: int) -> bytes:
    library = zstd_library()
    if level != ZSTD_DEFAULT_LEVEL or len(data) > _SMALL:
        whole: bytes = library.compress(data, level)
        return whole
    # Making a compressor takes longer than a small frame; a list's pop and append are atomic.
    compressor = _idle.pop() if _idle else library.ZstdCompressor(level)
    frame: bytes = compressor.compress(data, compressor.FLUSH_FRAME)
    _idle.append(compressor)
    return frame


_idle: Final[list[Any]] = []
"""Compressors of the default level, for small data, that nobody uses now."""
