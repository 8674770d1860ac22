"""Decompresses a stream in pieces, so that a hostile client's data is never inflated whole.

    for piece in inflate(codec, data):
        ...                     # bytes, about CHUNK of them at most

The greatest size of a piece is known before it is inflated, so nineteen kilobytes of zstd that
inflate to hundreds of megabytes take the memory of one piece. `decompress` joins the pieces. Both
are bounded by `max_size`: a client chooses what the broker inflates.

This is the only decoder, so the cleaner, every reader and the tools read all data that the broker
accepts from producers. It takes the forms that Kafka's takes and refuses the others, because
Kafka's consumers read the same bytes (decision 22; `tests/support/compressed_forms.py` lists the
forms).

* gzip    members, one after the other. Other bytes behind a member are ignored, as in Java.
* snappy  snappy-java's frame, or a raw block. A block is inflated whole, as the library offers
          nothing else. No block inflates to more than `_SNAPPY_RATIO` times its bytes, so one that
          claims more is refused unread. Up to three bytes behind the last block are ignored.
* lz4     one frame of independent blocks. Bytes behind it, or behind a block of no bytes, are
          ignored, and its content checksum is not checked. In format 0 the header checksum is not
          checked either (`compression`).
* zstd    frames, also skippable ones, one after the other. The library limits the window that a
          frame may ask for to 128 MB, as Java's does. A frame behind the first that ends before it
          has given a byte is ignored.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from protocol.records.compression import (
    INT32,
    MAX_DECOMPRESSED_SIZE,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    BytesLike,
    CompressionType,
    lz4_header_checksum,
    zstd_library,
)
from protocol.records.effort import Effort, EffortSpent
from protocol.records.errors import InvalidRecord, UnsupportedCompression

CHUNK: Final = 1 << 20
"""Approximate bytes of a piece: enough that the work per piece costs little per record."""

_INPUT: Final = 64 * 1024
"""Compressed bytes passed to a library at once: it copies those that it does not use."""
_SNAPPY_RATIO: Final = 22
"""Snappy's best ratio: a copy element of three bytes makes 64."""

_GZIP_START: Final = b"\x1f\x8b\x08"
_GZIP_LEAST: Final = 19
"""Fewer bytes behind a member are no other one: Java does not look at them."""

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_FLAGS: Final = 0x60
"""Kafka's decoder insists on version 1 and independent blocks, without a dictionary."""
_LZ4_FLAGS_MASK: Final = 0xE3
_LZ4_BLOCK_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_LZ4_UNCOMPRESSED: Final = 1 << 31
_LZ4_RATIO: Final = 255
_LZ4_BLOCKS: Final = 16
"""The most blocks of a piece: a block of one byte takes as much time as kilobytes."""
_UINT32: Final = struct.Struct("<I")


def inflate(
    codec: int,
    data: BytesLike,
    *,
    magic: int = 2,
    chunk: int = CHUNK,
    max_size: int = MAX_DECOMPRESSED_SIZE,
    effort: Effort | None = None,
) -> Iterator[BytesLike]:
    """The plain bytes behind `data`, in pieces (some may be empty); uncompressed data in slices.

    Raises InvalidRecord, as soon as it shows, when `data` is not what the codec says, ends early or
    inflates to more than `max_size` bytes; UnsupportedCompression for an unknown codec; EffortSpent
    when the pieces, or the bytes of `data` itself, are more than `effort` grants.
    """
    pieces = _pieces(codec, data, magic, chunk, max_size)
    return _bounded(pieces, max_size, effort or Effort(), len(data) if codec else 0)


def decompress(
    codec: int, data: BytesLike, *, magic: int = 2, max_size: int = MAX_DECOMPRESSED_SIZE
) -> bytes:
    """The plain bytes behind `data`. Raises as `inflate`."""
    pieces: list[BytesLike] = []
    left = max_size
    for piece in _pieces(codec, data, magic, CHUNK, max_size):
        left -= len(piece)
        if left < 0:
            raise _too_large(max_size)
        pieces.append(piece)
    return b"".join(pieces)


def _pieces(
    codec: int, data: BytesLike, magic: int, chunk: int, max_size: int
) -> Iterator[BytesLike]:
    if codec == CompressionType.GZIP:
        return _gunzip(data, chunk)
    if codec == CompressionType.SNAPPY:
        return _unsnappy(data, max_size)
    if codec == CompressionType.LZ4:
        return _unlz4(data, magic, chunk)
    if codec == CompressionType.ZSTD:
        return _unzstd(data, chunk)
    if codec == CompressionType.NONE:
        view = memoryview(data)
        return (view[at : at + chunk] for at in range(0, len(view), chunk))
    raise UnsupportedCompression(f"Unknown compression type id: {codec}")


def _failed(codec: str, why: object) -> InvalidRecord:
    """The error for data that is not in `codec`'s format."""
    return InvalidRecord(f"Failed to decompress record stream ({codec}: {why})")


def _too_large(max_size: int) -> InvalidRecord:
    """The error for data that inflates to more than `max_size` bytes."""
    return InvalidRecord(f"Record stream inflates to more than {max_size} bytes")


def _bounded(
    pieces: Iterator[BytesLike], max_size: int, effort: Effort, packed: int
) -> Iterator[BytesLike]:
    if packed > effort.bytes:
        raise EffortSpent  # a stream of blocks that hold nothing takes time as well
    left = max_size
    for piece in pieces:
        effort.spend_piece(len(piece))
        left -= len(piece)
        if left < 0:
            raise _too_large(max_size)
        yield piece


def _gunzip(data: BytesLike, chunk: int) -> Iterator[bytes]:
    view = memoryview(data)
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    at = 0
    try:
        while True:
            rest: BytesLike = inflater.unconsumed_tail
            if not rest:
                rest = view[at : at + _INPUT]
                at += len(rest)
            piece = inflater.decompress(rest, chunk)
            yield piece
            if inflater.eof:
                at -= len(inflater.unused_data)
                if len(view) - at < _GZIP_LEAST or bytes(view[at : at + 3]) != _GZIP_START:
                    return
                inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)  # another member
            elif not rest and not piece:
                raise _failed("gzip", "premature end of stream")
    except zlib.error as error:
        raise _failed("gzip", error) from None


def _unsnappy(data: BytesLike, max_size: int) -> Iterator[bytes]:
    import cramjam

    snappy = cramjam.snappy
    try:
        for block in _snappy_blocks(data):
            if not block:
                raise _failed("snappy", "block of no bytes")
            size = snappy.decompress_raw_len(block)
            if size > _SNAPPY_RATIO * len(block) or size > max_size:
                raise _too_large(max_size)
            yield bytes(snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _failed("snappy", error) from None


def _snappy_blocks(data: BytesLike) -> Iterator[memoryview]:
    """The raw blocks of a framed stream; a stream without frame is one block.

    Raises InvalidRecord when the frame ends too early.
    """
    view = memoryview(data)
    if bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        yield view
        return
    at, end = XERIAL_HEADER.size, len(view)
    if end < at:
        raise _failed("snappy", "premature end of header")
    while end - at >= INT32.size:
        if bytes(view[at : at + 8]) == XERIAL_MAGIC:
            at += XERIAL_HEADER.size  # streams may be concatenated (snappy-java 1.1.2+)
            if at > end:
                raise _failed("snappy", "premature end of header")
            continue
        (size,) = INT32.unpack_from(view, at)
        at += INT32.size
        if size < 0 or size > end - at:
            raise _failed("snappy", "block longer than the stream")
        yield view[at : at + size]
        at += size


def _unlz4(data: BytesLike, magic: int, chunk: int) -> Iterator[bytes]:
    view = memoryview(data)
    flags, most, at = _lz4_header(view, magic)
    pieces: list[BytesLike] = []
    size = 0
    try:
        while True:
            (word,) = _UINT32.unpack_from(view, at)
            at += _UINT32.size
            length = word & ~_LZ4_UNCOMPRESSED
            if not length:
                break
            if length > most:
                raise _failed("lz4", f"block of {length} bytes, where {most} are the most")
            block = view[at : at + length]
            at += length
            if flags & _LZ4_BLOCK_CHECKSUM:
                _check_lz4_block(block, _UINT32.unpack_from(view, at)[0])
                at += _UINT32.size
            if len(block) < length:
                raise _failed("lz4", "premature end of stream")
            plain = block if word & _LZ4_UNCOMPRESSED else _lz4_block(block, most)
            if not plain:
                break
            pieces.append(plain)
            size += len(plain)
            if size >= chunk or len(pieces) == _LZ4_BLOCKS:
                yield b"".join(pieces)
                pieces, size = [], 0
        if not length and flags & _LZ4_CONTENT_CHECKSUM:
            _UINT32.unpack_from(view, at)
    except struct.error:
        raise _failed("lz4", "premature end of stream") from None
    yield b"".join(pieces)


def _lz4_header(view: memoryview, magic: int) -> tuple[int, int, int]:
    """(flags, the greatest size of a block, where the first one begins) of the frame."""
    if len(view) < 7 or bytes(view[:4]) != _LZ4_MAGIC:
        raise _failed("lz4", "not an LZ4 frame")
    flags, sizes = view[4], view[5]
    if flags & _LZ4_FLAGS_MASK != _LZ4_FLAGS or sizes & 0x8F or sizes < 0x40:
        raise _failed(
            "lz4",
            f"frame descriptor {flags:#04x} {sizes:#04x}; Kafka reads version 1 with independent "
            "blocks of at most 64 KB to 4 MB and without a dictionary",
        )
    end = 6 + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    if len(view) <= end:
        raise _failed("lz4", "premature end of stream")
    if magic and view[end] != lz4_header_checksum(view[4:end])[0]:
        raise _failed("lz4", "wrong checksum of the frame descriptor")
    return flags, 1 << (2 * (sizes >> 4) + 8), end + 1


def _lz4_block(block: memoryview, most: int) -> bytes:
    from lz4 import block as lz4

    try:
        plain: bytes = lz4.decompress(block, uncompressed_size=min(most, _LZ4_RATIO * len(block)))
    except lz4.LZ4BlockError as error:
        raise _failed("lz4", error) from None
    return plain


def _check_lz4_block(block: memoryview, checksum: int) -> None:
    from xxhash import xxh32_intdigest

    if xxh32_intdigest(block) != checksum:
        raise _failed("lz4", "wrong checksum of a block")


def _unzstd(data: BytesLike, chunk: int) -> Iterator[bytes]:
    zstd = zstd_library()
    view = memoryview(data)
    at, end = 0, len(view)
    is_first = True
    try:
        while at < end or is_first:
            inflater = zstd.ZstdDecompressor()
            is_empty = True
            while not inflater.eof:
                rest = view[at : at + _INPUT] if inflater.needs_input else view[:0]
                at += len(rest)
                piece = inflater.decompress(rest, chunk)
                yield piece
                is_empty = is_empty and not piece
                if inflater.needs_input and at == end and not inflater.eof:
                    if is_empty and not is_first:
                        return
                    raise _failed("zstd", "premature end of stream")
            at -= len(inflater.unused_data)
            is_first = False
    except zstd.ZstdError as error:
        raise _failed("zstd", error) from None
