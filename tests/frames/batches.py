"""Record batches that only a broken or hostile client sends, most with a checksum that is right.

A broker that checks the checksum alone believes everything that it covers. So most mutations are
followed by a right checksum, and a few are not. Compressed batches are mutated before they are
compressed as well as after.
"""

import struct
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from crc32c import crc32c

from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType, compress
from protocol.records.message_set import build_message_set, encode_message
from tests.frames.mutations import number_ends

OVERHEAD: Final = 61
_FIELDS: Final = (
    ("base offset", 0, "q"),
    ("length", 8, "i"),
    ("leader epoch", 12, "i"),
    ("magic", 16, "b"),
    ("attributes", 21, "h"),
    ("last offset delta", 23, "i"),
    ("base timestamp", 27, "q"),
    ("max timestamp", 35, "q"),
    ("producer id", 43, "q"),
    ("producer epoch", 51, "h"),
    ("base sequence", 53, "i"),
    ("records", 57, "i"),
)
_CRC: Final = 17
_CRC_FROM: Final = 21
_LENGTHS: Final = (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x01", b"\x80", b"\x00")
"""Varints of records: the greatest and least, null, cut, none."""


def odd_records(rng: Random, now_ms: int) -> tuple[str, bytes]:
    """Draw the records of a Produce request; return the name of their flaw, and the bytes."""
    what, mutation = rng.choice(_MUTATIONS)
    return what, mutation(rng, now_ms)


def with_checksum(batch: bytes | bytearray) -> bytes:
    """Return the batch with the right checksum."""
    data = bytearray(batch)
    if len(data) >= OVERHEAD:
        struct.pack_into(">I", data, _CRC, crc32c(bytes(data[_CRC_FROM:])))
    return bytes(data)


def _records(rng: Random, now_ms: int) -> list[tuple[int, bytes | None, bytes | None, list]]:  # type: ignore[type-arg]
    return [
        (
            now_ms + rng.randrange(-5, 6),
            rng.choice((None, b"", b"key")),
            rng.choice((None, b"", b"v" * rng.choice((1, 10, 300)))),
            [("h", rng.choice((None, b"x")))] * rng.randrange(3),
        )
        for _ in range(rng.choice((1, 1, 2, 5, 40)))
    ]


def _batch(rng: Random, now_ms: int, codec: CompressionType | None = None) -> bytes:
    if codec is None:
        codec = rng.choice(list(CompressionType))
    with_producer = rng.random() < 0.3
    return build_batch(
        _records(rng, now_ms),
        codec=codec,
        producer_id=rng.choice((0, 1, 1000, 5)) if with_producer else -1,
        producer_epoch=rng.choice((0, 1)) if with_producer else -1,
        base_sequence=rng.choice((0, 0, 1, 5)) if with_producer else -1,
    )


def _header(rng: Random, now_ms: int) -> bytes:
    batch = bytearray(_batch(rng, now_ms))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _, position, code = rng.choice(_FIELDS)
        values = (*number_ends(code), -1, 0, 1, 2, 3, 5, 7, 8, 16, 32, 64, 100_000_000)
        low, high = number_ends(code)[0], number_ends(code)[-1]
        value = min(max(rng.choice(values), low), high)
        struct.pack_into(">" + code, batch, position, value)
    return with_checksum(batch)


def _body(rng: Random, now_ms: int) -> bytes:
    batch = bytearray(_batch(rng, now_ms))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(OVERHEAD, len(batch))
        odd = rng.choice(_LENGTHS) if rng.random() < 0.5 else bytes([rng.randrange(256)])
        batch[at : at + len(odd)] = odd
    return _sized(batch)


def _inside(rng: Random, now_ms: int) -> bytes:
    """The compressed records are odd; the codec's frame is right."""
    plain = bytearray(_batch(rng, now_ms, CompressionType.NONE))
    payload = bytearray(plain[OVERHEAD:])
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(payload))
        odd = rng.choice(_LENGTHS)
        payload[at : at + len(odd)] = odd
    codec = rng.choice(list(CompressionType)[1:])
    struct.pack_into(">h", plain, 21, codec)
    return _sized(plain[:OVERHEAD] + bytearray(compress(codec, bytes(payload))))


def _bomb(rng: Random, now_ms: int) -> bytes:
    """A few bytes that inflate to millions, none of which is a record."""
    plain = bytearray(_batch(rng, now_ms, CompressionType.NONE))
    codec = rng.choice((CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD))
    struct.pack_into(">h", plain, 21, codec)
    if rng.random() < 0.5:
        struct.pack_into(">i", plain, 57, rng.choice((1, 1_000_000, 2**31 - 1)))
    bomb = _filled(codec, rng.choice((0, 2, 255)), rng.choice((100_000, 3_000_000)))
    return _sized(plain[:OVERHEAD] + bytearray(bomb))


@cache
def _filled(codec: CompressionType, byte: int, size: int) -> bytes:
    return compress(codec, bytes([byte]) * size)


def _many(rng: Random, now_ms: int) -> bytes:
    """Hundreds of thousands of records that are right, in some hundred bytes."""
    plain = bytearray(_batch(rng, now_ms, CompressionType.NONE))
    codec = rng.choice((CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD))
    count = rng.choice((10_000, 300_000))
    said = rng.choice((count, count, 1, 2**31 - 1))
    struct.pack_into(">h", plain, 21, codec)
    struct.pack_into(">i", plain, 23, said - 1)
    struct.pack_into(">i", plain, 57, said)
    return _sized(plain[:OVERHEAD] + bytearray(_smallest(codec, count)))


@cache
def _smallest(codec: CompressionType, count: int) -> bytes:
    """Records without anything; all have offset delta 0."""
    return compress(codec, b"\x0c\0\0\0\x01\x01\0" * count)


def _cut(rng: Random, now_ms: int) -> bytes:
    batch = _batch(rng, now_ms)
    return batch[: rng.randrange(len(batch))]


def _several(rng: Random, now_ms: int) -> bytes:
    return b"".join(_batch(rng, now_ms) for _ in range(rng.choice((2, 3, 30))))


def _legacy(rng: Random, now_ms: int) -> bytes:
    magic = rng.choice((0, 1))
    codec = rng.choice(list(CompressionType)[:4])
    old = [(at, now_ms, one[1], one[2]) for at, one in enumerate(_records(rng, now_ms))]
    data = bytearray(build_message_set(old, magic=magic, codec=codec))
    if rng.random() < 0.3:
        # The checksum of the wrapper is right, and its content is not.
        inner = compress(codec, bytes(data[:-1]) + b"\xff") if codec else bytes(data)
        offset = rng.choice((-1, 0, 2**63 - 1))
        return encode_message(magic, offset, now_ms, None, inner, rng.randrange(16))
    for _ in range(rng.choice((0, 1, 3))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _bytes(rng: Random, now_ms: int) -> bytes:
    batch = bytearray(_batch(rng, now_ms))
    for _ in range(rng.choice((1, 2, 8))):
        batch[rng.randrange(len(batch))] = rng.randrange(256)
    return bytes(batch)


def _sized(batch: bytes | bytearray) -> bytes:
    data = bytearray(batch)
    struct.pack_into(">i", data, 8, len(data) - 12)
    return with_checksum(data)


_MUTATIONS: Final[tuple[tuple[str, Callable[[Random, int], bytes]], ...]] = (
    ("plain", _batch),
    ("header", _header),
    ("header", _header),
    ("body", _body),
    ("inside", _inside),
    ("bomb", _bomb),
    ("many", _many),
    ("cut", _cut),
    ("several", _several),
    ("legacy", _legacy),
    ("bytes", _bytes),
)
