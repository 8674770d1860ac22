"""The codecs of record batches: what Kafka's Java client and broker write and accept.

* gzip    one member with the header that Java (16+) writes; zlib from the standard library.
* snappy  written in snappy-java's ("xerial") frame of 32 KiB blocks; read framed or raw.
* lz4     LZ4 frame, independent 64 KiB blocks, no content size, no checksums beside the header's.
          Magic 0 carries the header checksum of the first clients, computed over the frame magic
          as well (KAFKA-3160): written so, and on reading not looked at, as Kafka does.
* zstd    plain frames.

A client chooses what we must inflate, so every reader is bounded by `max_size` and fails with
InvalidRecord beyond it, before the memory is used. Libraries are imported at first use: a broker
that stores batches as they come never needs them to start.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from protocol.records.errors import InvalidRecord, UnsupportedCompression

BytesLike = bytes | bytearray | memoryview

# Far above what a 100 MB request (socket.request.max.bytes) inflates to in practice, far below a
# bomb.
MAX_DECOMPRESSED_SIZE: Final = 256 << 20

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = struct.Struct(">8sii")  # magic, version, compatible version
_XERIAL_BLOCK: Final = 32 * 1024
INT32: Final = struct.Struct(">i")
# deflate, no flags, mtime 0, no extra flags, OS 255 (unknown): GZIPOutputStream since Java 16.
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_GZIP_TRAILER: Final = struct.Struct("<II")
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_DEFAULT_LEVEL: Final = 9
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_DEFAULT_LEVEL: Final = 3
_ZSTD_FIRST_GUESS: Final = 64 * 1024
# cramjam's words when the output does not fit; a test holds them to it.
_ZSTD_OUTPUT_FULL: Final = "failed to write whole buffer"


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
    """`data` in `codec`'s frame. `level` as in `compression.<codec>.level`; None is Kafka's
    default.

    Raises UnsupportedCompression for zstd below magic 2 (KIP-110 forbids it).
    """
    if codec == CompressionType.NONE:
        return bytes(data)
    if codec == CompressionType.GZIP:
        return _gzip(data, -1 if level is None else level)
    if codec == CompressionType.SNAPPY:
        return _snappy(data)
    if codec == CompressionType.LZ4:
        return _lz4(data, level, magic)
    if magic < 2:
        raise UnsupportedCompression("zstd needs message format version 2")
    import cramjam

    return bytes(cramjam.zstd.compress(data, _ZSTD_DEFAULT_LEVEL if level is None else level))


def decompress(
    codec: int, data: BytesLike, *, magic: int = 2, max_size: int = MAX_DECOMPRESSED_SIZE
) -> bytes:
    """The plain bytes behind `data`.

    Raises InvalidRecord when `data` is not what the codec says or inflates to more than `max_size`
    bytes, UnsupportedCompression for an unknown codec.
    """
    if codec == CompressionType.NONE:
        if len(data) > max_size:
            raise too_large(max_size)
        return bytes(data)
    if codec == CompressionType.GZIP:
        return _gunzip(data, max_size)
    if codec == CompressionType.SNAPPY:
        return _unsnappy(data, max_size)
    if codec == CompressionType.LZ4:
        return _unlz4(data, magic, max_size)
    if codec == CompressionType.ZSTD:
        return _unzstd(data, max_size)
    raise UnsupportedCompression(f"Unknown compression type id: {codec}")


def failed(codec: str, why: object) -> InvalidRecord:
    """The data is not what the codec says."""
    return InvalidRecord(f"Failed to decompress record stream ({codec}: {why})")


def too_large(max_size: int) -> InvalidRecord:
    """The data inflates to more than it may."""
    return InvalidRecord(f"Record stream inflates to more than {max_size} bytes")


# ---- gzip


def _gzip(data: BytesLike, level: int) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, deflate.compress(data), deflate.flush(), trailer))


def _gunzip(data: BytesLike, max_size: int) -> bytes:
    pieces: list[bytes] = []
    left = max_size
    rest: BytesLike = data
    while True:
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            # One byte more than allowed tells "full" from "too large".
            piece = inflate.decompress(rest, left + 1)
        except zlib.error as error:
            raise failed("gzip", error) from None
        left -= len(piece)
        if left < 0:
            raise too_large(max_size)
        if not inflate.eof:
            raise failed("gzip", "premature end of stream")
        pieces.append(piece)
        rest = inflate.unused_data
        if not rest:
            return b"".join(pieces) if len(pieces) > 1 else piece


# ---- snappy


def _snappy(data: BytesLike) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    pieces: list[bytes] = [XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1)]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        pieces += (INT32.pack(len(block)), block)
    return b"".join(pieces)


def _unsnappy(data: BytesLike, max_size: int) -> bytes:
    pieces: list[bytes] = []
    left = max_size
    for block in snappy_blocks(data):
        piece = unsnappy_block(block, left, max_size)
        left -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def snappy_blocks(data: BytesLike) -> Iterator[memoryview]:
    """The raw blocks of a framed stream; one that is not framed is one block.

    Raises InvalidRecord when the frame ends too early.
    """
    view = memoryview(data)
    if bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        yield view
        return
    at, end = XERIAL_HEADER.size, len(view)
    if end < at:
        raise failed("snappy", "premature end of header")
    while at < end:
        if end - at < INT32.size:
            raise failed("snappy", "premature end of block length")
        if bytes(view[at : at + 8]) == XERIAL_MAGIC:
            at += XERIAL_HEADER.size  # streams may be concatenated (snappy-java 1.1.2+)
            continue
        (size,) = INT32.unpack_from(view, at)
        at += INT32.size
        if size < 0 or size > end - at:
            raise failed("snappy", "block longer than the stream")
        yield view[at : at + size]
        at += size


def unsnappy_block(block: memoryview, left: int, max_size: int) -> bytes:
    """One raw block; `left` is what it may inflate to, `max_size` what the error speaks of."""
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > left:
            raise too_large(max_size)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise failed("snappy", error) from None


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
    return out if magic else out[:6] + bytes([_header_checksum(out[:6])]) + out[7:]


def _unlz4(data: BytesLike, magic: int, max_size: int) -> bytes:
    from lz4 import frame

    rest: BytesLike = data if magic else mend_lz4_header(data)
    pieces: list[bytes] = []
    left = max_size
    while True:
        inflate = frame.LZ4FrameDecompressor()
        try:
            piece: bytes = inflate.decompress(rest, max_length=left + 1)
        except (RuntimeError, EOFError, ValueError) as error:
            raise failed("lz4", error) from None
        left -= len(piece)
        if left < 0:
            raise too_large(max_size)
        if not inflate.eof:
            raise failed("lz4", "premature end of stream")
        pieces.append(piece)
        rest = inflate.unused_data or b""
        if not rest:
            return b"".join(pieces) if len(pieces) > 1 else piece


def mend_lz4_header(data: BytesLike) -> bytes:
    """`data` with the header checksum that the LZ4 frame format asks for."""
    raw = bytes(data)
    if raw[:4] != _LZ4_MAGIC or len(raw) < 7:
        raise failed("lz4", "not an LZ4 frame")
    length = 6 + (8 if raw[4] & 0x08 else 0)
    return raw[:length] + bytes([_header_checksum(raw[4:length])]) + raw[length + 1 :]


def _header_checksum(descriptor: bytes) -> int:
    return (_xxh32_of_short(descriptor) >> 8) & 0xFF


def _xxh32_of_short(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes: all that a frame descriptor needs."""
    word = 0xFFFFFFFF
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    acc = (p5 + len(data)) & word
    whole = len(data) & ~3
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        acc = (acc + lane * p3) & word
        acc = (((acc << 17) | (acc >> 15)) & word) * p4 & word
    for byte in data[whole:]:
        acc = (acc + byte * p5) & word
        acc = (((acc << 11) | (acc >> 21)) & word) * p1 & word
    acc = (acc ^ (acc >> 15)) * p2 & word
    acc = (acc ^ (acc >> 13)) * p3 & word
    return acc ^ (acc >> 16)


# ---- zstd


def _unzstd(data: BytesLike, max_size: int) -> bytes:
    import cramjam

    declared = _zstd_content_size(data)
    if declared is not None and declared > max_size:
        raise too_large(max_size)
    # Without a declared size (Java streams) guess and double: the output never exceeds max_size.
    room = (
        declared if declared is not None else min(max(4 * len(data), _ZSTD_FIRST_GUESS), max_size)
    )
    while True:
        out = bytearray(room)
        try:
            size = cramjam.zstd.decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if _ZSTD_OUTPUT_FULL not in str(error):
                raise failed("zstd", error) from None
        else:
            return bytes(memoryview(out)[:size])
        if room >= max_size:
            raise too_large(max_size)
        room = min(max(2 * room, _ZSTD_FIRST_GUESS), max_size)


def _zstd_content_size(data: BytesLike) -> int | None:
    """Frame_Content_Size of the first frame (RFC 8878, 3.1.1.1), None when it is not declared."""
    head = bytes(data[:18])
    if head[:4] != _ZSTD_MAGIC or len(head) < 6:
        return None
    descriptor = head[4]
    flag = descriptor >> 6
    single_segment = descriptor & 0x20
    at = 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3]
    width = (1 if single_segment else 0, 2, 4, 8)[flag]
    field = head[at : at + width]
    if not width or len(field) < width:
        return None
    return int.from_bytes(field, "little") + (256 if flag == 1 else 0)
