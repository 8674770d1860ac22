"""From a time to a record of a batch (S-TS-2, S-TS-3): opened chunk by chunk, up to the record.

A small batch is searched where somebody asks; what is more work than was granted there
(`EffortSpent`) is begun anew in a child process.
"""

from typing import Final

from protocol.records.batch import BatchHeader, TimestampType, read_header
from protocol.records.compression import MAX_DECOMPRESSED_SIZE, BytesLike
from protocol.records.effort import Effort, EffortSpent
from protocol.records.opened import Chunk, open_chunks
from protocol.records.scan import NUMPY_FROM, read_fields

CHUNK: Final = 256 << 10
SOME: Final = 64 << 10
"""Bytes of records that may be searched on the event loop: two milliseconds of the smallest."""

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
    return _in_records(buf, pos, header, timestamp, start_offset, CHUNK, max_size, Effort())


def first_at_or_after_of_few(
    buf: BytesLike, pos: int, timestamp: int, start_offset: int = -1
) -> Found | None:
    """The same, if it costs a millisecond or two. Raises EffortSpent where it would be more."""
    if buf[pos + 16] < 2 and buf[pos + 17] & 7:
        raise EffortSpent
    header = read_header(buf, pos)
    if header.max_timestamp < timestamp:
        return None
    if header.magic < 2:
        return _in_messages(buf, pos, timestamp, start_offset, MAX_DECOMPRESSED_SIZE)
    effort = Effort(bytes=SOME, steps=SOME // 8)
    return _in_records(
        buf, pos, header, timestamp, start_offset, SOME // 2, MAX_DECOMPRESSED_SIZE, effort
    )


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
    chunk_size: int,
    max_size: int,
    effort: Effort,
) -> Found | None:
    log_dated = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    wanted = _ANY_TIME if log_dated else timestamp
    delta = start_offset - header.base_offset
    for chunk in open_chunks(buf, pos, header, chunk=chunk_size, max_size=max_size, effort=effort):
        found = _in_chunk(chunk, header, wanted, delta)
        if found is not None:
            return header.base_offset + found[0], header.max_timestamp if log_dated else found[1]
    return None


def _in_chunk(
    chunk: Chunk, header: BatchHeader, timestamp: int, delta: int
) -> tuple[int, int] | None:
    if len(chunk.starts) <= NUMPY_FROM:
        fields = read_fields(chunk.payload, chunk.starts.tolist(), header.base_timestamp)
        return fields.first_from(timestamp, delta)
    import numpy as np

    from protocol.records.scan_numpy import read_times

    deltas, offsets = read_times(chunk.payload, chunk.starts[:-1], chunk.starts[1:])
    times = np.int64(header.base_timestamp) + deltas  # wraps as Java's does
    found = (times >= timestamp) & (offsets >= delta)
    if not found.any():
        return None
    index = int(found.argmax())
    return int(offsets[index]), int(times[index])
