"""From an offset to a byte position: the short walk after the index lookup.

The offset index says where to start; from there batch headers are hopped over until one reaches the
offset. The hop reads a small window at a time: with small batches one window holds them all, with
large ones each hop reads one window.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.records.batch import LOG_OVERHEAD, MIN_LEGACY_SIZE
from protocol.records.errors import CorruptBatch
from storage.filesystem import File

WINDOW: Final = 4096 + 256
"""An index interval and a bit: the batch looked for is mostly inside."""

_HEAD: Final = struct.Struct(">qi4xb6xi")
"""Base offset, batch length, magic, last offset delta; the rest is skipped."""
_unpack_head = _HEAD.unpack_from
_PAD: Final = bytes(_HEAD.size)

_TIMED_HEAD: Final = struct.Struct(">qiib6xi8xq")
"""Base offset, batch length, leader epoch, magic, last offset delta, max timestamp."""
_unpack_timed_head = _TIMED_HEAD.unpack_from
_HEAD_PAD: Final = bytes(_TIMED_HEAD.size)
_INT64: Final = struct.Struct(">q")
_TIMESTAMP_AT: Final = 18
"""Of a message of format 1."""


class BatchPosition(NamedTuple):
    """Where a batch lies."""

    position: int
    size: int
    last_offset: int


def find_batch(file: File, offset: int, start: int, end: int) -> BatchPosition | None:
    """The first batch in [start, end) whose last offset is >= `offset`; None when there is none.

    `start` must be the beginning of a batch. Raises CorruptBatch, OSError.
    """
    position = start
    while position < end:
        window = file.pread(min(WINDOW, end - position), position)
        have = len(window)
        if have == 0:
            return None
        if position + have >= end:
            # A legacy message may be a byte shorter than the fields looked at.
            window += _PAD
        at, stop = 0, len(window) - _HEAD.size
        while at < have and at <= stop:
            base, length, magic, delta = _unpack_head(window, at)
            if length < MIN_LEGACY_SIZE or not 0 <= magic <= 2:
                raise CorruptBatch(f"{file.path}: no batch at position {position + at}")
            last = base + delta if magic == 2 else base
            if last >= offset:
                return BatchPosition(position + at, length + LOG_OVERHEAD, last)
            at += length + LOG_OVERHEAD
        position += at
    return None


class BatchHead(NamedTuple):
    """What a walk by time looks at. Of formats 0 and 1 it says what the outer message says."""

    position: int
    size: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    """-1 in formats that have none."""
    magic: int


def batch_heads(file: File, start: int, end: int) -> Iterator[BatchHead]:
    """The head of each batch in [start, end); nothing else of a large one is read.

    `start` must be the beginning of a batch. Raises CorruptBatch, OSError.
    """
    position = start
    while position < end:
        window = file.pread(min(WINDOW, end - position), position)
        have = len(window)
        if have == 0:
            return
        if position + have >= end:
            window += _HEAD_PAD
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


def read_batch_size(file: File, position: int) -> int:
    """Size of the batch that starts at `position`. Raises CorruptBatch, OSError."""
    head = file.pread(LOG_OVERHEAD, position)
    size = int.from_bytes(head[8:12], "big", signed=True) + LOG_OVERHEAD
    if len(head) < LOG_OVERHEAD or size < MIN_LEGACY_SIZE + LOG_OVERHEAD:
        raise CorruptBatch(f"{file.path}: no batch at position {position}")
    return size
