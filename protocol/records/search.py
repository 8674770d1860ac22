"""Finds a batch's record by time (S-TS-2, S-TS-3), opening it chunk by chunk up to the record.

A small batch is searched on the event loop (`first_at_or_after_of_few`). A larger one raises
EffortSpent there, and is searched in a child process (`first_at_or_after`).
"""

from typing import Final

from protocol.records.batch import (
    CODEC_MASK,
    MAGIC_OFFSET,
    BatchHeader,
    TimestampType,
    read_header,
)
from protocol.records.chain import record_starts
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.effort import EffortSpent
from protocol.records.errors import InvalidRecord
from protocol.records.opened import Chunk, open_chunks
from protocol.records.payload import payload_of
from protocol.records.scan import NUMPY_FROM
from protocol.records.scan_fields import RecordFields
from protocol.records.scan_python import read_fields as read_few_fields

CHUNK: Final = 256 << 10
FEW: Final = 1000
SOME: Final = 256 << 10
"""The most records (`FEW`), and bytes of them (`SOME`), that are searched on the event loop."""

_ANY_TIME: Final = -(1 << 63)

Found = tuple[int, int]
"""(offset, timestamp)"""


def first_at_or_after(
    buf: BytesLike,
    pos: int,
    timestamp: int,
    start_offset: int = -1,
    *,
    max_size: int = MAX_DECOMPRESSED_SIZE,
) -> Found | None:
    """(offset, timestamp) of the first record by offset dated `timestamp` ms or later.

    Records below `start_offset` do not count. None when the batch (any magic) has no such record; a
    batch whose max timestamp is smaller is not opened. Raises CorruptBatch, InvalidRecord and
    UnsupportedCompression for a batch that cannot be read.
    """
    header = read_header(buf, pos)
    if header.max_timestamp < timestamp:
        return None
    if header.magic < 2:
        return _in_messages(buf, pos, timestamp, start_offset, max_size)
    return _in_records(buf, pos, header, timestamp, start_offset, max_size)


def first_at_or_after_of_few(
    buf: BytesLike, pos: int, timestamp: int, start_offset: int = -1
) -> Found | None:
    """`first_at_or_after` for a small batch. Raises EffortSpent for more than `FEW` or `SOME`, and
    for one that is invalid. Without numpy, whose import would block the loop.
    """
    if buf[pos + MAGIC_OFFSET] < 2:
        if buf[pos + MAGIC_OFFSET + 1] & CODEC_MASK:
            raise EffortSpent
        return _in_messages(buf, pos, timestamp, start_offset, MAX_DECOMPRESSED_SIZE)
    header = read_header(buf, pos)
    if header.max_timestamp < timestamp:
        return None
    if header.record_count > FEW:
        raise EffortSpent
    try:
        payload = payload_of(buf, pos, header, max_size=SOME)
        starts = record_starts(payload, header.record_count)
        fields = read_few_fields(payload, starts, header.base_timestamp)
    except InvalidRecord:
        raise EffortSpent from None  # too large, or invalid: the full search tells which
    return _found_in(fields, header, timestamp, start_offset)


def _found_in(
    fields: RecordFields, header: BatchHeader, timestamp: int, start_offset: int
) -> Found | None:
    log_dated = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    wanted = _ANY_TIME if log_dated else timestamp
    found = fields.first_from(wanted, start_offset - header.base_offset)
    if found is None:
        return None
    return header.base_offset + found[0], header.max_timestamp if log_dated else found[1]


def _in_messages(
    buf: BytesLike, pos: int, timestamp: int, start_offset: int, max_size: int
) -> Found | None:
    from protocol.records.message_set import iter_legacy_records

    for record in iter_legacy_records(buf, pos, max_size=max_size):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return record.offset, record.timestamp
    return None


def _in_records(
    buf: BytesLike,
    pos: int,
    header: BatchHeader,
    timestamp: int,
    start_offset: int,
    max_size: int,
) -> Found | None:
    for chunk in open_chunks(buf, pos, header, chunk=CHUNK, max_size=max_size):
        found = _found_in(_fields_of(chunk, header), header, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _fields_of(chunk: Chunk, header: BatchHeader) -> RecordFields:
    if len(chunk.starts) <= NUMPY_FROM:
        return read_few_fields(chunk.payload, chunk.starts.tolist(), header.base_timestamp)
    from protocol.records.scan_numpy import read_times

    return read_times(chunk.payload, chunk.starts, header.base_timestamp)
