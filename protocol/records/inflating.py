"""Decompresses a stream in pieces, so that a hostile client's data is never inflated whole.

    for piece in inflate(codec, data):
        ...                     # bytes, about CHUNK of them at most

The greatest size of a piece is known before it is inflated, so nineteen kilobytes of zstd that
inflate to hundreds of megabytes take the memory of one piece. `decompress` joins the pieces, for
small data and for tools. Both are bounded by `max_size`: a client chooses what the broker inflates.

* gzip    members, one after the other.
* snappy  snappy-java's frame, or a raw block. A block is inflated whole, as the library offers
          nothing else. No block inflates to more than `_SNAPPY_RATIO` times its bytes, so one that
          claims more is refused unread.
* lz4     frames. In format 0 the header checksum is not checked, as in Kafka (`compression`).
* zstd    frames, cut at their blocks (RFC 8878, 3.1.1), whose headers bound their inflated size.
"""

import zlib
from collections.abc import Iterator
from typing import Any, Final

from protocol.records.compression import (
    INT32,
    MAX_DECOMPRESSED_SIZE,
    XERIAL_HEADER,
    XERIAL_MAGIC,
    BytesLike,
    CompressionType,
    lz4_header_checksum,
)
from protocol.records.errors import InvalidRecord, UnsupportedCompression

CHUNK: Final = 1 << 20
"""Approximate bytes of a piece: enough that the work per piece costs little per record."""

_INPUT: Final = 64 * 1024
"""Compressed bytes passed to a library at once: it copies those that it does not use."""
_SNAPPY_RATIO: Final = 22
"""Snappy's best ratio: a copy element of three bytes makes 64."""

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"

_ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"  # behind a byte of 0x50 to 0x5f
_ZSTD_BLOCK_MAX: Final = 128 * 1024
_ZSTD_BLOCK_LEAST: Final = 8 * 1024
"""The least bytes a block counts as: blocks of three bytes inflate to nothing but take time."""
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_COMPRESSED = 0, 1, 2
_ZSTD_SIZE_AND_MAGIC: Final = 8
_ZSTD_GUESS: Final = 64
"""Data is decompressed at once only up to so many times its bytes."""
_zstd: "list[tuple[Any, type[Exception]]]" = []
"""A decompressor for reuse (making one takes longer than a small frame), and its error class."""


def inflate(
    codec: int,
    data: BytesLike,
    *,
    magic: int = 2,
    chunk: int = CHUNK,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> Iterator[BytesLike]:
    """The plain bytes behind `data`, in pieces (some may be empty); uncompressed data in slices.

    Raises InvalidRecord, as soon as it shows, when `data` is not what the codec says, ends early or
    inflates to more than `max_size` bytes; UnsupportedCompression for an unknown codec.
    """
    return _bounded(_pieces(codec, data, magic, chunk, max_size), max_size)


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


def inflate_at_once(codec: int, data: BytesLike, most: int) -> bytes | None:
    """The plain bytes behind `data`, if one call of the library gives all of them.

    None otherwise: for more than `most` bytes, several frames, or damage. Then call `inflate` or
    `decompress`. Much faster than those for small data, of which there may be thousands in a row.
    Format 2 only.
    """
    if codec == CompressionType.LZ4:
        from lz4 import frame

        lz4 = frame.LZ4FrameDecompressor()
        try:
            plain: bytes = lz4.decompress(data, max_length=most)
        except (RuntimeError, EOFError, ValueError):
            return None
        return plain if lz4.eof and not lz4.unused_data else None
    if codec == CompressionType.ZSTD:
        return _unzstd_at_once(data, most)
    if codec == CompressionType.GZIP:
        gzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            plain = gzip.decompress(data, most)
        except zlib.error:
            return None
        return plain if gzip.eof and not gzip.unused_data else None
    try:
        return decompress(codec, data, max_size=most)
    except (InvalidRecord, UnsupportedCompression):
        return None


def _unzstd_at_once(data: BytesLike, most: int) -> bytes | None:
    if not _zstd:
        import zstandard

        _zstd.append((zstandard.ZstdDecompressor(), zstandard.ZstdError))
    decompressor, error = _zstd[0]
    try:
        # For a frame that does not give its size, the library allocates max_output_size bytes.
        plain: bytes = decompressor.decompress(
            data, max_output_size=min(most, _ZSTD_GUESS * len(data)), allow_extra_data=False
        )
    except error:
        return None
    return plain if len(plain) <= most else None


def _pieces(
    codec: int, data: BytesLike, magic: int, chunk: int, max_size: int
) -> Iterator[BytesLike]:
    if codec == CompressionType.GZIP:
        return _gunzip(data, chunk)
    if codec == CompressionType.SNAPPY:
        return _unsnappy(data, max_size)
    if codec == CompressionType.LZ4:
        return _unlz4(data if magic else _mended_lz4(data), chunk)
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


def _bounded(pieces: Iterator[BytesLike], max_size: int) -> Iterator[BytesLike]:
    left = max_size
    for piece in pieces:
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
            if inflater.eof:
                yield piece
                at -= len(inflater.unused_data)
                if at == len(view):
                    return
                inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)  # another member
            elif not rest and not piece:
                raise _failed("gzip", "premature end of stream")
            else:
                yield piece
    except zlib.error as error:
        raise _failed("gzip", error) from None


def _unsnappy(data: BytesLike, max_size: int) -> Iterator[bytes]:
    import cramjam

    snappy = cramjam.snappy
    try:
        for block in _snappy_blocks(data):
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
    while at < end:
        if end - at < INT32.size:
            raise _failed("snappy", "premature end of block length")
        if bytes(view[at : at + 8]) == XERIAL_MAGIC:
            at += XERIAL_HEADER.size  # streams may be concatenated (snappy-java 1.1.2+)
            continue
        (size,) = INT32.unpack_from(view, at)
        at += INT32.size
        if size < 0 or size > end - at:
            raise _failed("snappy", "block longer than the stream")
        yield view[at : at + size]
        at += size


def _unlz4(data: BytesLike, chunk: int) -> Iterator[bytes]:
    from lz4 import frame

    view = memoryview(data)
    inflater = frame.LZ4FrameDecompressor()
    at = 0
    try:
        while True:
            rest = b""
            if wanted := inflater.needs_input:
                rest = bytes(view[at : at + _INPUT])
                at += len(rest)
            piece: bytes = inflater.decompress(rest, max_length=chunk)
            if inflater.eof:
                yield piece
                at -= len(inflater.unused_data or b"")
                if at == len(view):
                    return
                inflater = frame.LZ4FrameDecompressor()  # another frame
            elif wanted and not rest and not piece:
                raise _failed("lz4", "premature end of stream")
            else:
                yield piece
    except (RuntimeError, EOFError, ValueError) as error:
        raise _failed("lz4", error) from None


def _mended_lz4(data: BytesLike) -> bytes:
    """`data` with the header checksum that the LZ4 frame format asks for."""
    raw = bytes(data)
    if raw[:4] != _LZ4_MAGIC or len(raw) < 7:
        raise _failed("lz4", "not an LZ4 frame")
    length = 6 + (8 if raw[4] & 0x08 else 0)
    return raw[:length] + lz4_header_checksum(raw[4:length]) + raw[length + 1 :]


def _unzstd(data: BytesLike, chunk: int) -> Iterator[bytes]:
    import zstandard

    view = memoryview(data)
    # The library limits the window that a stream may ask for, as Java's does.
    decompressor = zstandard.ZstdDecompressor()
    at, end = 0, len(view)
    if not end:
        raise _failed("zstd", "premature end of stream")
    try:
        while at < end:
            magic = bytes(view[at : at + 4])
            if magic[1:] == _ZSTD_SKIPPABLE and magic[0] & 0xF0 == 0x50:
                size = int.from_bytes(view[at + 4 : at + _ZSTD_SIZE_AND_MAGIC], "little")
                at += _ZSTD_SIZE_AND_MAGIC + size
                if at > end:
                    raise _failed("zstd", "premature end of stream")
                yield b""
                continue
            start = at
            inflater = decompressor.decompressobj()
            for cut in _zstd_cuts(view, start, chunk):
                yield inflater.decompress(view[at:cut])
                at = cut
            if not inflater.eof:
                raise _failed("zstd", "premature end of stream")
    except zstandard.ZstdError as error:
        raise _failed("zstd", error) from None


def _zstd_cuts(view: memoryview, at: int, chunk: int) -> Iterator[int]:
    """Positions that cut the frame at `at` into pieces of `chunk` inflated bytes or little more.

    The last one is the frame's end.
    """
    import zstandard

    parameters = zstandard.get_frame_parameters(view[at : at + 18])
    at += zstandard.frame_header_size(view[at : at + 18])
    end = len(view)
    most = 0
    last = 0
    while not last:
        if end - at < 3:
            raise _failed("zstd", "premature end of stream")
        head = int.from_bytes(view[at : at + 3], "little")
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        if kind > _ZSTD_COMPRESSED:
            raise _failed("zstd", "unknown kind of block")
        at += 3 + (1 if kind == _ZSTD_RLE else size)
        # The library refuses a block that claims more than a block may hold.
        if kind == _ZSTD_COMPRESSED:
            size = _ZSTD_BLOCK_MAX
        most += min(max(size, _ZSTD_BLOCK_LEAST), _ZSTD_BLOCK_MAX)
        if at > end:
            raise _failed("zstd", "premature end of stream")
        if most >= chunk and not last:
            yield at
            most = 0
    if parameters.has_checksum:
        at += 4
    if at > end:
        raise _failed("zstd", "premature end of stream")
    yield at
