"""The header of a record batch, and the few bytes of it that a broker may change in place.

    0  base offset       i64   outside the CRC: the leader sets it
    8  batch length      i32   bytes after this field
   12  leader epoch      i32   outside the CRC: the leader sets it
   16  magic             i8    2 here; 0 and 1 are message sets (`message_set`)
   17  crc               u32   CRC-32C of everything from `attributes` to the end
   21  attributes        i16   bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control,
                               6 delete horizon (base timestamp is the horizon, KIP-534)
   23  last offset delta i32
   27  base timestamp    i64
   35  max timestamp     i64
   43  producer id       i64
   51  producer epoch    i16
   53  base sequence     i32
   57  record count      i32
   61  records

Produce reads one header per partition, so `read_header` is one unpack into a slotted object. All
functions take any bytes-like buffer and a position, and copy nothing; patches need a writable
buffer. A header holds the values at the time it was read, so a patch function also updates the
header that it is given.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from protocol.records.compression import BytesLike
from protocol.records.errors import CorruptBatch
from protocol.records.header import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_OFFSET,
    DELETE_HORIZON_BIT,
    HEADER_UP_TO_MAGIC,
    LAYOUT,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAX_TIMESTAMP_OFFSET,
    MIN_LEGACY_SIZE,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    TimestampType,
    fields_struct,
)

__all__ = [
    "ATTRIBUTES_OFFSET",
    "BATCH_OVERHEAD",
    "BatchHeader",
    "CODEC_MASK",
    "CONTROL_BIT",
    "CRC_OFFSET",
    "DELETE_HORIZON_BIT",
    "HEADER",
    "HEADER_UP_TO_MAGIC",
    "LOG_OVERHEAD",
    "MAGIC_OFFSET",
    "MAX_TIMESTAMP_OFFSET",
    "MIN_LEGACY_SIZE",
    "TIMESTAMP_TYPE_BIT",
    "TRANSACTIONAL_BIT",
    "TimestampType",
    "crc_of",
    "iter_batches",
    "read_header",
    "set_log_append_time",
    "set_max_timestamp",
    "set_place",
    "verify_crc",
]

HEADER: Final = fields_struct(*LAYOUT)
_SIZE_AT: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_UINT32: Final = struct.Struct(">I")
_INT16: Final = struct.Struct(">h")
_unpack_header = HEADER.unpack_from
_pack_place = struct.Struct(">qii").pack_into


def read_header(buf: BytesLike, pos: int = 0) -> BatchHeader:
    """The header at `pos`.

    Raises CorruptBatch when the bytes end early, or size or magic is nonsense.
    Magic 0 and 1 cost more: a compressed wrapper is opened to learn its first offset.
    """
    header = BatchHeader.__new__(BatchHeader)
    try:
        (
            header.base_offset,
            header.batch_length,
            header.partition_leader_epoch,
            header.magic,
            header.crc,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        ) = _unpack_header(buf, pos)
    except struct.error:
        return _read_other(buf, pos)
    if header.magic != 2:
        return _read_other(buf, pos)
    if header.batch_length < BATCH_OVERHEAD - LOG_OVERHEAD:
        raise CorruptBatch(
            f"Record batch is corrupt (the size {header.size} is smaller than "
            f"the minimum allowed overhead {BATCH_OVERHEAD})"
        )
    return header


def _read_other(buf: BytesLike, pos: int) -> BatchHeader:
    """Read a header that is not a whole v2 header: a legacy message's, or raise CorruptBatch."""
    if len(buf) - pos < HEADER_UP_TO_MAGIC:
        raise CorruptBatch(f"Batch header needs {HEADER_UP_TO_MAGIC} bytes, found {len(buf) - pos}")
    if buf[pos + MAGIC_OFFSET] in (0, 1):
        from protocol.records.message_set import read_legacy_header

        return read_legacy_header(buf, pos)
    if buf[pos + MAGIC_OFFSET] != 2:
        raise CorruptBatch(f"Invalid magic found in record: {buf[pos + MAGIC_OFFSET]}")
    raise CorruptBatch(f"Batch header needs {BATCH_OVERHEAD} bytes, found {len(buf) - pos}")


def iter_batches(
    buf: BytesLike, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch in `buf[start:end]`, ending silently at a partial one.

    Raises CorruptBatch at a size below the format's least or a magic other than 0, 1, 2. Checksums
    are not checked. As Kafka's `ByteBufferLogInputStream`.
    """
    if end is None:
        end = len(buf)
    while end - start >= HEADER_UP_TO_MAGIC:
        (length,) = _SIZE_AT.unpack_from(buf, start + LENGTH_OFFSET)
        if length < MIN_LEGACY_SIZE:
            raise CorruptBatch(
                f"Record size {length} is less than the minimum record overhead ({MIN_LEGACY_SIZE})"
            )
        magic = buf[start + MAGIC_OFFSET]
        if magic > 2:
            raise CorruptBatch(f"Invalid magic found in record: {magic}")
        following = start + LOG_OVERHEAD + length
        if following > end:
            return
        yield start, read_header(buf, start)
        start = following


def crc_of(buf: BytesLike, pos: int, size: int) -> int:
    """CRC-32C that the v2 batch of `size` bytes at `pos` should carry."""
    view = memoryview(buf)[pos + ATTRIBUTES_OFFSET : pos + size]
    crc: int = crc32c(view)
    return crc


def verify_crc(buf: BytesLike, pos: int, header: BatchHeader) -> bool:
    """Whether the bytes at `pos` are whole and match the header's checksum, any magic."""
    size = header.batch_length + LOG_OVERHEAD
    if pos + size > len(buf):
        return False
    if header.magic == 2:
        return crc_of(buf, pos, size) == header.crc
    return zlib.crc32(memoryview(buf)[pos + MAGIC_OFFSET : pos + size]) == header.crc


def set_place(
    buf: bytearray | memoryview, header: BatchHeader, base_offset: int, leader_epoch: int
) -> None:
    """Sets base offset and leader epoch of the v2 batch at the start of `buf`; updates `header`.

    Both fields lie outside the checksum. One store writes them, and again the length between them.
    """
    _pack_place(buf, 0, base_offset, header.batch_length, leader_epoch)
    header.base_offset = base_offset
    header.partition_leader_epoch = leader_epoch


def set_log_append_time(
    buf: bytearray | memoryview, pos: int, header: BatchHeader, now_ms: int
) -> None:
    """Marks the v2 batch as dated by the log: attribute bit 3, max timestamp `now_ms`, new CRC.

    The base timestamp and the records stay untouched; readers use the max timestamp for every
    record (S-APP-4). Updates `header`.
    """
    set_max_timestamp(buf, pos, header, TimestampType.LOG_APPEND_TIME, now_ms)


def set_max_timestamp(
    buf: bytearray | memoryview,
    pos: int,
    header: BatchHeader,
    timestamp_type: TimestampType,
    max_timestamp: int,
) -> None:
    """Sets timestamp type and max timestamp of the v2 batch, with a new CRC unless nothing changes.

    Unknown attribute bits stay (S-FMT-4). Updates `header`.
    As `DefaultRecordBatch.setMaxTimestamp`.
    """
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
    if attributes == header.attributes and max_timestamp == header.max_timestamp:
        return
    _INT16.pack_into(buf, pos + ATTRIBUTES_OFFSET, attributes)
    _INT64.pack_into(buf, pos + MAX_TIMESTAMP_OFFSET, max_timestamp)
    crc = crc_of(buf, pos, header.batch_length + LOG_OVERHEAD)
    _UINT32.pack_into(buf, pos + CRC_OFFSET, crc)
    header.attributes = attributes
    header.max_timestamp = max_timestamp
    header.crc = crc
