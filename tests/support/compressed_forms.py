"""Every form in which a codec's bytes may come: legal ones, seldom ones, damaged ones.

`FORMS` names each, and says whether Apache Kafka reads all records of a batch of this form, or
refuses the batch. `tests/conformance/test_decompression.py` asks Kafka itself;
`tests/unit/storage/test_compressed_forms.py` asks everything here that reads batches.
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import cramjam
import lz4.frame
import xxhash
import zstandard

from protocol.records.builder import assemble_batch, encode_record
from protocol.records.compression import XERIAL_HEADER, XERIAL_MAGIC, CompressionType, compress

NOW = 1_700_000_000_000
GZIP, SNAPPY, LZ4, ZSTD = tuple(CompressionType)[1:]
GARBAGE = b"\x07garbage and more of it, thirty bytes and some"


REFUSED_HERE = {"gzip: a reserved flag"}
"""RFC 1952 wants these refused, and zlib does; Java reads them."""


class Form(NamedTuple):
    """A way to write plain bytes, and whether Kafka reads them all."""

    name: str
    codec: CompressionType
    packed: Callable[[bytes], bytes]
    is_taken: bool


def halves(plain: bytes) -> tuple[bytes, bytes]:
    return plain[: len(plain) // 2], plain[len(plain) // 2 :]


# ---- gzip


def member(plain: bytes, flags: int = 0, fields: bytes = b"", level: int = 6) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    head = b"\x1f\x8b\x08" + bytes((flags,)) + struct.pack("<IBB", 1_700_000_000, 0, 3) + fields
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    tail = struct.pack("<II", zlib.crc32(plain), len(plain))
    return head + deflate.compress(plain) + deflate.flush() + tail


EXTRA = b"\x04\x00ab\x00\x00"


def gzip_forms() -> Iterator[tuple[str, Callable[[bytes], bytes], bool]]:
    yield "one member", gzip.compress, True
    yield "as Java writes it", lambda p: compress(GZIP, p), True
    yield "stored", lambda p: member(p, level=0), True
    yield "extra field", lambda p: member(p, 4, EXTRA), True
    yield "file name", lambda p: member(p, 8, b"name\0"), True
    yield "comment", lambda p: member(p, 16, b"comment\0"), True
    yield "header checksum", lambda p: member(p, 2), True
    yield "all fields", lambda p: member(p, 30, EXTRA + b"name\0comment\0"), True
    yield "marked as text", lambda p: member(p, 1), True
    yield "two members", lambda p: b"".join(map(gzip.compress, halves(p))), True
    yield "an empty member first", lambda p: gzip.compress(b"") + gzip.compress(p), True
    yield "an empty member last", lambda p: gzip.compress(p) + gzip.compress(b""), True
    yield "a wrong header checksum", lambda p: _flipped(member(p, 2), 10), False
    yield "a reserved flag", lambda p: member(p, 0x20), True
    yield "a wrong checksum", lambda p: _flipped(gzip.compress(p), -5), False
    yield "a wrong length", lambda p: _flipped(gzip.compress(p), -1), False
    yield "no trailer", lambda p: gzip.compress(p)[:-8], False
    yield "half a trailer", lambda p: gzip.compress(p)[:-4], False
    yield "cut", lambda p: gzip.compress(p)[:40], False
    yield "a second member cut", lambda p: gzip.compress(p) + gzip.compress(p)[:30], False
    yield "half a second header", lambda p: gzip.compress(p) + gzip.compress(p)[:5], True
    yield "one zero behind", lambda p: gzip.compress(p) + b"\0", True
    yield "zeros behind", lambda p: gzip.compress(p) + bytes(512), True
    yield "garbage behind", lambda p: gzip.compress(p) + GARBAGE, True
    yield "zlib's header", zlib.compress, False
    yield "plain bytes", bytes, False
    yield "nothing", lambda p: b"", False


# ---- snappy


def raw_snappy(plain: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(plain))


def block(plain: bytes) -> bytes:
    packed = raw_snappy(plain)
    return struct.pack(">i", len(packed)) + packed


def xerial(*blocks: bytes, version: int = 1, compatible: int = 1) -> bytes:
    return XERIAL_HEADER.pack(XERIAL_MAGIC, version, compatible) + b"".join(blocks)


def snappy_forms() -> Iterator[tuple[str, Callable[[bytes], bytes], bool]]:
    yield "framed", lambda p: compress(SNAPPY, p), True
    yield "two blocks", lambda p: xerial(*map(block, halves(p))), True
    yield "two streams", lambda p: b"".join(xerial(block(half)) for half in halves(p)), True
    yield "an empty stream first", lambda p: xerial() + xerial(block(p)), True
    yield "an empty stream last", lambda p: xerial(block(p)) + xerial(), True
    yield "an empty block first", lambda p: xerial(block(b""), block(p)), True
    yield "an empty block last", lambda p: xerial(block(p), block(b"")), True
    yield "a block of no bytes first", lambda p: xerial(bytes(4), block(p)), False
    yield "a block of no bytes last", lambda p: xerial(block(p), bytes(4)), False
    yield "raw", raw_snappy, True
    yield "version 2", lambda p: xerial(block(p), version=2, compatible=1), True
    yield "version 0", lambda p: xerial(block(p), version=0, compatible=0), True
    yield "for version 2 only", lambda p: xerial(block(p), version=2, compatible=2), True
    yield "raw, cut", lambda p: raw_snappy(p)[:-1], False
    yield "raw, a byte behind", lambda p: raw_snappy(p) + b"\0", False
    yield "raw, two blocks", lambda p: b"".join(map(raw_snappy, halves(p))), False
    yield "cut", lambda p: xerial(block(p))[:-1], False
    yield "no blocks", lambda p: xerial(), False
    yield "half a header", lambda p: xerial()[:12], False
    yield "a byte behind", lambda p: xerial(block(p)) + b"\0", True
    yield "three bytes behind", lambda p: xerial(block(p)) + b"\0\0\1", True
    yield "a block that is not there", lambda p: xerial(block(p)) + struct.pack(">i", 9), False
    yield "garbage behind", lambda p: xerial(block(p)) + GARBAGE, False
    yield "half a second header", lambda p: xerial(block(p)) + xerial()[:12], False
    yield "a negative length", lambda p: xerial(struct.pack(">i", -1)) + block(p), False
    yield "snappy's own framing", lambda p: bytes(cramjam.snappy.compress(p)), False
    yield "plain bytes", bytes, False
    yield "nothing", lambda p: b"", False


# ---- lz4

_MAGIC = b"\x04\x22\x4d\x18"
_SKIPPABLE = b"\x53\x2a\x4d\x18\x05\0\0\0hello"


def hashed(data: bytes) -> bytes:
    return struct.pack("<I", xxhash.xxh32_intdigest(data))


def lz4_block(plain: bytes, *, checksum: bool = False, raw: bool = False) -> bytes:
    packed = plain if raw else bytes(cramjam.lz4.compress_block(plain, store_size=False))
    size = struct.pack("<I", len(packed) | (raw << 31))
    return size + packed + (hashed(packed) if checksum else b"")


def lz4_frame(
    *blocks: bytes,
    flags: int = 0x60,
    sizes: int = 0x40,
    fields: bytes = b"",
    tail: bytes = bytes(4),
) -> bytes:
    descriptor = bytes((flags, sizes)) + fields
    return _MAGIC + descriptor + hashed(descriptor)[1:2] + b"".join(blocks) + tail


def lz4_forms() -> Iterator[tuple[str, Callable[[bytes], bytes], bool]]:
    yield "as Java writes it", lambda p: compress(LZ4, p), True
    yield "by the library", lambda p: lz4.frame.compress(p, block_linked=False), True
    yield "linked blocks", lambda p: lz4_frame(lz4_block(p), flags=0x40), False
    for size in (5, 6, 7):
        yield (
            f"block size {size}",
            lambda p, size=size: lz4_frame(lz4_block(p), sizes=size << 4),
            True,
        )
    yield "two blocks", lambda p: lz4_frame(*map(lz4_block, halves(p))), True
    yield "an uncompressed block", lambda p: lz4_frame(lz4_block(p, raw=True)), True
    yield "content size", lambda p: _lz4_sized(p, len(p)), True
    yield "a wrong content size", lambda p: _lz4_sized(p, len(p) + 1), True
    yield "content checksum", lambda p: _lz4_summed(p, hashed(p)), True
    yield "a wrong content checksum", lambda p: _lz4_summed(p, b"abcd"), True
    yield "a content checksum cut", lambda p: _lz4_summed(p, b"abc"), False
    yield (
        "block checksums",
        lambda p: lz4_frame(*(lz4_block(half, checksum=True) for half in halves(p)), flags=0x70),
        True,
    )
    yield (
        "uncompressed, block checksum",
        lambda p: lz4_frame(lz4_block(p, checksum=True, raw=True), flags=0x70),
        True,
    )
    yield (
        "a wrong block checksum",
        lambda p: lz4_frame(_flipped(lz4_block(p, checksum=True), -1), flags=0x70),
        False,
    )
    yield "a wrong header checksum", lambda p: _flipped(compress(LZ4, p), 6), False
    yield "two frames", lambda p: b"".join(compress(LZ4, half) for half in halves(p)), False
    yield "an empty frame first", lambda p: lz4_frame() + compress(LZ4, p), False
    yield "an empty frame last", lambda p: compress(LZ4, p) + lz4_frame(), True
    yield "an empty block first", lambda p: lz4_frame(lz4_block(b""), lz4_block(p)), False
    yield "an empty block last", lambda p: lz4_frame(lz4_block(p), lz4_block(b"")), True
    yield "a skippable frame first", lambda p: _SKIPPABLE + compress(LZ4, p), False
    yield "a skippable frame last", lambda p: compress(LZ4, p) + _SKIPPABLE, True
    yield "zeros behind", lambda p: compress(LZ4, p) + bytes(512), True
    yield "garbage behind", lambda p: compress(LZ4, p) + GARBAGE, True
    yield "no end mark", lambda p: lz4_frame(lz4_block(p), tail=b""), False
    yield "half an end mark", lambda p: lz4_frame(lz4_block(p), tail=b"\0\0"), False
    yield (
        "an end mark of an uncompressed block",
        lambda p: lz4_frame(lz4_block(p), tail=b"\0\0\0\x80"),
        True,
    )
    yield "cut", lambda p: compress(LZ4, p)[:40], False
    yield "half a header", lambda p: compress(LZ4, p)[:5], False
    yield "the older frame", lambda p: b"\x02\x21\x4c\x18" + lz4_block(p), False
    yield "a dictionary", lambda p: lz4_frame(lz4_block(p), flags=0x61, fields=b"\1\0\0\0"), False
    yield "the reserved bit of the flags", lambda p: lz4_frame(lz4_block(p), flags=0x62), False
    yield "version 2", lambda p: lz4_frame(lz4_block(p), flags=0xA0), False
    yield "block size 3", lambda p: lz4_frame(lz4_block(p), sizes=0x30), False
    yield "reserved bits of sizes", lambda p: lz4_frame(lz4_block(p), sizes=0x41), False
    yield "the highest bit of sizes", lambda p: lz4_frame(lz4_block(p), sizes=0xC0), False
    yield "a block that inflates to more", lambda p: lz4_frame(lz4_block(p + bytes(65536))), False
    yield (
        "a block that is longer",
        lambda p: lz4_frame(lz4_block(p + bytes(65536), raw=True)),
        False,
    )
    yield "plain bytes", bytes, False
    yield "nothing", lambda p: b"", False


def _lz4_sized(plain: bytes, size: int) -> bytes:
    return lz4_frame(lz4_block(plain), flags=0x68, fields=struct.pack("<Q", size))


def _lz4_summed(plain: bytes, checksum: bytes) -> bytes:
    return lz4_frame(lz4_block(plain), flags=0x64, tail=bytes(4) + checksum)


# ---- zstd

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_RAW, _ZSTD_RLE, _ZSTD_RESERVED = 0, 1, 3


def zstd(plain: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(plain)  # type: ignore[arg-type]


def undeclared(plain: bytes) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(plain) + stream.flush()


def zstd_frame(plain: bytes, *, window: int = 17, kind: int = _ZSTD_RAW, fields: int = 0) -> bytes:
    """A frame of one block, without the content's size, with a window of 2^`window` bytes."""
    head = len(plain) << 3 | kind << 1 | 1
    descriptor = bytes((fields, (window - 10) << 3))
    return _ZSTD_MAGIC + descriptor + head.to_bytes(3, "little") + plain


def zstd_single(plain: bytes, size: int) -> bytes:
    """A frame of one segment that declares `size`, and has no window."""
    head = len(plain) << 3 | 1
    return _ZSTD_MAGIC + b"\xa0" + struct.pack("<I", size) + head.to_bytes(3, "little") + plain


def zstd_forms() -> Iterator[tuple[str, Callable[[bytes], bytes], bool]]:
    empty, empty_undeclared = zstd(b""), undeclared(b"")
    yield "one frame", zstd, True
    yield "as written here", lambda p: compress(ZSTD, p), True
    yield "no content size", undeclared, True
    yield "a checksum", lambda p: zstd(p, write_checksum=True), True
    yield "a wrong checksum", lambda p: _flipped(zstd(p, write_checksum=True), -1), False
    yield "level 19", lambda p: zstd(p, level=19), True
    yield "two frames", lambda p: b"".join(map(zstd, halves(p))), True
    yield "two frames, no sizes", lambda p: b"".join(map(undeclared, halves(p))), True
    yield "an empty frame first", lambda p: empty + zstd(p), True
    yield "an empty frame first, no size", lambda p: empty_undeclared + zstd(p), True
    yield "two empty frames first", lambda p: empty * 2 + undeclared(p), True
    yield "an empty frame last", lambda p: zstd(p) + empty, True
    yield "an empty frame between", lambda p: empty.join(map(zstd, halves(p))), True
    yield "a skippable frame first", lambda p: _SKIPPABLE + zstd(p), True
    yield "a skippable frame between", lambda p: _SKIPPABLE.join(map(zstd, halves(p))), True
    yield "a skippable frame last", lambda p: zstd(p) + _SKIPPABLE, True
    yield "an empty skippable frame", lambda p: b"\x5f" + _SKIPPABLE[1:4] + bytes(4) + zstd(p), True
    yield "a skippable frame cut", lambda p: zstd(p) + _SKIPPABLE[:-1], True
    yield "half a skippable header", lambda p: zstd(p) + _SKIPPABLE[:6], True
    yield "a raw block", zstd_frame, True
    yield "one segment", lambda p: zstd_single(p, len(p)), True
    yield "a content size too large", lambda p: zstd_single(p, len(p) + 1), False
    yield "a content size too small", lambda p: zstd_single(p, len(p) - 1), False
    yield "a window of 128 MB", lambda p: zstd_frame(p, window=27), True
    yield "a window of 256 MB", lambda p: zstd_frame(p, window=28), False
    yield "a window of 2 TB", lambda p: zstd_frame(p, window=41), False
    yield "an unused bit", lambda p: zstd_frame(p, fields=0x10), True
    yield "a reserved bit", lambda p: zstd_frame(p, fields=0x08), False
    yield "a dictionary", lambda p: _ZSTD_MAGIC + b"\x01\x38\x07" + zstd_frame(p)[6:], False
    yield "a reserved block", lambda p: zstd_frame(p, kind=_ZSTD_RESERVED), False
    yield "cut", lambda p: zstd(p)[:40], False
    yield "a byte short", lambda p: zstd(p)[:-1], False
    yield "a second frame cut", lambda p: zstd(p) + zstd(p)[:-1], True
    yield "two frames, one cut", lambda p: b"".join(map(zstd, halves(p)))[:-1], False
    yield "half a second magic", lambda p: zstd(p) + _ZSTD_MAGIC[:3], True
    yield "a zero behind", lambda p: zstd(p) + b"\0", False
    yield "zeros behind", lambda p: zstd(p) + bytes(512), False
    yield "garbage behind", lambda p: zstd(p) + GARBAGE, False
    yield "an older format", lambda p: b"\x27" + zstd(p)[1:], False
    yield "plain bytes", bytes, False
    yield "nothing", lambda p: b"", False


def _flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


FORMS = [
    Form(f"{codec.name.lower()}: {name}", codec, packed, is_taken)
    for codec, forms in (
        (GZIP, gzip_forms),
        (SNAPPY, snappy_forms),
        (LZ4, lz4_forms),
        (ZSTD, zstd_forms),
    )
    for name, packed, is_taken in forms()
]


def batch_of(form: Form, values: list[bytes]) -> bytes:
    """A batch with a record for each value, in this form."""
    payload = b"".join(encode_record(i, 0, None, value) for i, value in enumerate(values))
    return assemble_batch(
        form.packed(payload),
        base_offset=0,
        record_count=len(values),
        last_offset_delta=len(values) - 1,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=form.codec,
    )


def some_values() -> list[list[bytes]]:
    """Values of a batch that is read at once, and of one that is read in chunks."""
    rng = Random(3)
    return [
        [rng.randbytes(50).hex().encode() if i % 2 else bytes(100) for i in range(count)]
        for count in (7, 400)
    ]
