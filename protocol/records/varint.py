"""Zigzag varints as protobuf and Kafka's records write them (`ByteUtils.writeVarlong`).

A one-byte varint stands for -64 to 63, a two-byte one for -8192 to 8191. Kafka reads at most 5
bytes for an int and 10 for a long, and drops the bits beyond 32 and 64.
"""

from typing import Final

from protocol.records.compression import BytesLike
from protocol.records.errors import InvalidRecord

_INT32_SHIFT_LIMIT: Final = 28
_INT64_SHIFT_LIMIT: Final = 63
_UINT32: Final = 0xFFFFFFFF
_UINT64: Final = 0xFFFFFFFFFFFFFFFF


def _encode(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_SMALL: Final = tuple(_encode(value) for value in range(1024))
_MINUS_ONE: Final = b"\x01"


def encode_varint(value: int) -> bytes:
    """The bytes of `value`, which must fit a signed 64-bit integer."""
    if 0 <= value < 1024:
        return _SMALL[value]
    if value == -1:
        return _MINUS_ONE
    return _encode(value)


def read_varint(buf: BytesLike, at: int) -> tuple[int, int]:
    """(value, position after it) of a 32-bit varint.

    Raises InvalidRecord when it is longer than 5 bytes, IndexError when the buffer ends in it.
    """
    return _read(buf, at, _INT32_SHIFT_LIMIT, _UINT32)


def read_varlong(buf: BytesLike, at: int) -> tuple[int, int]:
    """(value, position after it) of a 64-bit varint.

    Raises InvalidRecord when it is longer than 10 bytes, IndexError when the buffer ends in it.
    """
    return _read(buf, at, _INT64_SHIFT_LIMIT, _UINT64)


def _read(buf: BytesLike, at: int, shift_limit: int, mask: int) -> tuple[int, int]:
    byte = buf[at]
    at += 1
    raw = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > shift_limit:
            raise InvalidRecord("Found invalid record structure: varint is too long")
        byte = buf[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    raw &= mask
    return (raw >> 1) ^ -(raw & 1), at


def wrap_int64(value: int) -> int:
    """Java's long addition: a base and a delta from a hostile client may overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
