"""From an offset to a byte position: the short walk after the index lookup.

The offset index says where to start; from there batch headers are hopped over until one reaches the
offset. The hop reads a small window at a time: with small batches one window holds them all, with
large ones each hop reads one window.
"""

import struct
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


def read_batch_size(file: File, position: int) -> int:
    """Size of the batch that starts at `position`. Raises CorruptBatch, OSError."""
    head = file.pread(LOG_OVERHEAD, position)
    size = int.from_bytes(head[8:12], "big", signed=True) + LOG_OVERHEAD
    if len(head) < LOG_OVERHEAD or size < MIN_LEGACY_SIZE + LOG_OVERHEAD:
        raise CorruptBatch(f"{file.path}: no batch at position {position}")
    return size
