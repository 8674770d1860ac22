"""The fields of a batch's header, and properties derived from them.

The layout is drawn in `batch`, which reads and patches headers; all positions are computed from
`LAYOUT`. A message of format 0 or 1 is read into such a header, too (`message_set`).
"""

import struct
from enum import IntEnum
from typing import Final

from protocol.records.compression import CompressionType
from protocol.types import MAX_SEQUENCE

LAYOUT: Final = {
    "base_offset": "q",
    "batch_length": "i",
    "partition_leader_epoch": "i",
    "magic": "b",
    "crc": "I",
    "attributes": "h",
    "last_offset_delta": "i",
    "base_timestamp": "q",
    "max_timestamp": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "i",
    "record_count": "i",
}
"""The fields in their order, each with its `struct` code."""


def position_of(field: str) -> int:
    """The position at which a field begins in a batch."""
    names = list(LAYOUT)
    return struct.calcsize(">" + "".join(LAYOUT[name] for name in names[: names.index(field)]))


def fields_struct(*fields: str) -> struct.Struct:
    """Reads these fields, named in their order, from the beginning of a batch; skips the others."""
    code, at = ">", 0
    for field in fields:
        position = position_of(field)
        code += f"{position - at}x{LAYOUT[field]}"
        at = position + struct.calcsize(">" + LAYOUT[field])
    return struct.Struct(code)


BATCH_OVERHEAD: Final = struct.calcsize(">" + "".join(LAYOUT.values()))
LENGTH_OFFSET: Final = position_of("batch_length")
LOG_OVERHEAD: Final = position_of("partition_leader_epoch")
"""Bytes that the batch length does not count: it counts what follows it."""
MAGIC_OFFSET: Final = position_of("magic")
HEADER_UP_TO_MAGIC: Final = MAGIC_OFFSET + 1
CRC_OFFSET: Final = position_of("crc")
ATTRIBUTES_OFFSET: Final = position_of("attributes")
KIND_OFFSET: Final = ATTRIBUTES_OFFSET + 1
"""The low byte of the attributes, which has all bits below: one index where that will do."""
MAX_TIMESTAMP_OFFSET: Final = position_of("max_timestamp")

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

# crc, magic, attributes, key length, value length: the least a magic 0 message holds.
MIN_LEGACY_SIZE: Final = 14


class TimestampType(IntEnum):
    """The source of records' timestamps: the producer, or the log when it appended them."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader:
    """One batch's header. A message of magic 0 or 1 appears as a batch of its own (`message_set`).

    The attributes are the raw fields; what can be derived is a property. `base_timestamp` of a
    batch with a delete horizon is that horizon; record timestamps are still relative to it.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
    )
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, overhead included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch stands for (kept when compaction removed it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> CompressionType:
        """The codec of the records. Raises UnsupportedCompression for ids 5 to 7."""
        return CompressionType.for_id(self.attributes & CODEC_MASK)

    @property
    def is_compressed(self) -> bool:
        """Whether the records are behind a codec, known or not."""
        return self.attributes & CODEC_MASK != 0

    @property
    def timestamp_type(self) -> TimestampType:
        """The source of the records' timestamps."""
        if self.attributes & TIMESTAMP_TYPE_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether it holds control records (`control`), which only brokers write."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 without one. Wraps after 2147483647 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BatchHeader):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in LAYOUT)

    __hash__ = None  # type: ignore[assignment]  # patched in place, so never a key

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name, '?')}" for name in LAYOUT)
        return f"BatchHeader({fields})"
