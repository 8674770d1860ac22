"""Functions that generated code calls at run time: the parts too rare or too long to be inlined.

Lengths and tags on the wire are unsigned varints: seven bits a byte, least significant first, five
bytes at most. Generated code reads a one-byte varint itself and calls this module for longer ones.
"""

from typing import Any

from protocol.errors import ProtocolError

MAX_VARINT = 0x7FFFFFFF
MAX_STRING = 0x7FFF
"""Bytes of the longest string: the length is an int16 in old versions, and Kafka keeps that limit
in compact ones."""

MAX_TAGGED_FIELDS = 1_000
"""Tagged fields of a group: no group of the protocol has ten; a frame could claim fifty million."""

SHORT_VARINTS = tuple(bytes((n,)) for n in range(128))
"""The encodings of 0..127."""


def read_uvarint(buf: Any, offset: int, first: int) -> tuple[int, int]:
    """(value, next offset) of a varint whose first byte, `first` (above 127), is already read.

    Raises ProtocolError if it has more than five bytes or exceeds 2^31 - 1, IndexError if the
    buffer ends first.
    """
    byte = buf[offset]
    if byte < 128:  # most: 128 to 16,383
        return first - 128 + (byte << 7), offset + 1
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > MAX_VARINT:
                break
            return value, offset
    raise ProtocolError("varint of more than 31 bits")


def uvarint(value: int) -> bytes:
    """`value` (0 .. 2^31 - 1) as an unsigned varint."""
    if value < 128:
        return SHORT_VARINTS[value]
    if value < 16_384:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_string_prefix(size: int) -> bytes:
    """The length prefix of a compact string of 127 bytes or more.

    Raises ValueError if it is longer than `MAX_STRING`.
    """
    if size > MAX_STRING:
        raise ValueError(f"a string of {size} bytes does not fit the wire format")
    return uvarint(size + 1)


def skip_tagged_fields(buf: Any, offset: int, count: int, end: int) -> int:
    """The offset behind `count` tagged fields, none of them known.

    Raises ProtocolError for bad bytes, and for more than `MAX_TAGGED_FIELDS`.
    """
    if count > MAX_TAGGED_FIELDS:
        raise ProtocolError("more tagged fields than a group may have")
    if count * 2 > end - offset:
        raise ProtocolError("more tagged fields than the frame holds")
    for _ in range(count):
        tag = buf[offset]
        offset += 1
        if tag > 127:
            tag, offset = read_uvarint(buf, offset, tag)
        size = buf[offset]
        offset += 1
        if size > 127:
            size, offset = read_uvarint(buf, offset, size)
        offset += size
        if offset > end:
            raise ProtocolError("tagged field longer than the frame")
    return offset
