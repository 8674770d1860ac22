"""From an offset to a byte position: the short walk after the index lookup.

The offset index gives the start; from there the walk goes from batch header to batch header until a
batch reaches the offset. It reads a small window at a time: with small batches one window holds
them all, with large ones each step reads one window.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.records.batch import LOG_OVERHEAD, MIN_LEGACY_SIZE
from protocol.records.errors import CorruptBatch
from protocol.records.header import LENGTH_OFFSET, fields_struct
from storage.filesystem import File

WINDOW: Final = 4096 + 256
"""Bytes per read, a little more than an index interval: most searches end in the first window."""

_HEAD: Final = fields_struct("base_offset", "batch_length", "magic", "last_offset_delta")
_unpack_head = _HEAD.unpack_from

_TIMED_HEAD: Final = fields_struct(
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "last_offset_delta",
    "max_timestamp",
)
_unpack_timed_head = _TIMED_HEAD.unpack_from
_PAD: Final = bytes(_TIMED_HEAD.size)
_INT64: Final = struct.Struct(">q")
_TIMESTAMP_AT: Final = 18
"""Position of the timestamp in a message of format 1."""


NO_ENTRY: Final = -(1 << 63)
"""No index entry led to the start: the search begins at the segment's first byte."""


class BatchPosition(NamedTuple):
    """Position and size in bytes of a batch, and its last offset."""

    position: int
    size: int
    last_offset: int


class Astray(Exception):
    """The index entry that a search began with contradicts the log."""


def find_batch(
    file: File, offset: int, start: int, end: int, *, entry: int = NO_ENTRY, most_reads: int = 0
) -> BatchPosition | None:
    """The first batch in [start, end) whose last offset is >= `offset`; None when there is none.

    `entry` is the offset of the index entry that led to `start`: on the way a batch has to end
    exactly there. (Mostly the first one; followers of older brokers indexed the first position and
    the last offset of a whole fetch.) After `most_reads` reads, 0 for no limit, the index must lack
    entries.

    Raises Astray for the index, CorruptBatch for the log, OSError.
    """
    position, reads, met = start, 0, entry == NO_ENTRY
    if not met and not 0 < start < end:
        raise Astray(f"leads to position {start} of {end}")
    while position < end:
        window, have = _window(file, position, end)
        reads += 1
        at, stop = 0, len(window) - _HEAD.size
        while at < have and at <= stop:
            base, length, magic, delta = _unpack_head(window, at)
            if length < MIN_LEGACY_SIZE or not 0 <= magic <= 2:
                raise _no_batch(file, position + at, start, entry, met)
            last = base + delta if magic == 2 else base
            if not met and last >= entry:
                if last != entry:
                    raise Astray(f"says {entry} of a batch at {position + at} that ends at {last}")
                met = True
            if last >= offset:
                if position + at + length + LOG_OVERHEAD > end:
                    raise _no_batch(file, position + at, start, entry, met)
                return BatchPosition(position + at, length + LOG_OVERHEAD, last)
            at += length + LOG_OVERHEAD
        position += at
        if reads == most_reads:
            raise Astray(f"has no entry for {position - start} bytes from {start}")
    if position > end or not met:
        raise _no_batch(file, position, start, entry, met)
    return None


class BatchHead(NamedTuple):
    """The header fields for a walk by time; in formats 0 and 1 those of the outer message."""

    position: int
    size: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    """-1 in formats 0 and 1."""
    magic: int


def batch_heads(file: File, start: int, end: int) -> Iterator[BatchHead]:
    """The head of each batch in [start, end); of a large batch little more is read.

    `start` must be the beginning of a batch. Raises CorruptBatch, also for a file that was cut,
    OSError.
    """
    position = start
    while position < end:
        window, have = _window(file, position, end)
        at, stop = 0, len(window) - _TIMED_HEAD.size
        while at < have and at <= stop:
            base, length, epoch, magic, delta, greatest = _unpack_timed_head(window, at)
            if length < MIN_LEGACY_SIZE or not 0 <= magic <= 2:
                raise CorruptBatch(f"{file.path}: no batch at position {position + at}")
            if magic < 2:
                delta, epoch = 0, -1
                greatest = _INT64.unpack_from(window, at + _TIMESTAMP_AT)[0] if magic else -1
            size = length + LOG_OVERHEAD
            yield BatchHead(position + at, size, base + delta, greatest, epoch, magic)
            at += size
        position += at
    if position > end:
        raise CorruptBatch(f"{file.path}: the last batch ends at {position}, beyond {end}")


def _window(file: File, position: int, end: int) -> tuple[bytes, int]:
    """The next bytes of the walk, maybe padded, and how many of them are the file's.

    Raises CorruptBatch if the file ends before `end`, OSError.
    """
    window = file.pread(min(WINDOW, end - position), position)
    have = len(window)
    if position + have >= end:
        # A legacy message may be a byte shorter than the fields that are unpacked.
        return window + _PAD, have
    if have < WINDOW:
        raise CorruptBatch(f"{file.path}: was cut to less than {position + have + 1} bytes")
    return window, have


def _no_batch(file: File, position: int, start: int, entry: int, met: bool) -> Exception:
    if not met:
        return Astray(f"says that a batch up to {entry} begins at {start}")
    return CorruptBatch(f"{file.path}: no batch at position {position}")


def read_batch_size(file: File, position: int) -> int:
    """Size of the batch that starts at `position`. Raises CorruptBatch, OSError."""
    head = file.pread(LOG_OVERHEAD, position)
    size = int.from_bytes(head[LENGTH_OFFSET:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if len(head) < LOG_OVERHEAD or size < MIN_LEGACY_SIZE + LOG_OVERHEAD:
        raise CorruptBatch(f"{file.path}: no batch at position {position}")
    return size
