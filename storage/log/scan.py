"""Walking a record file batch by batch, in large reads.

Readers of many whole batches go through here: recovery, rebuilding of indexes and producer state,
the cleaner, the offline reader. One `pread` reads a megabyte; headers are unpacked from it one
after the other; a batch that crosses the end of a chunk is read again whole.

Damaged data does not raise: the walk ends, and `Walk.ended` and `Walk.position` give the caller the
reason and the length of the good part (S-REC-9).
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from protocol.records.batch import (
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MIN_LEGACY_SIZE,
    BatchHeader,
    read_header,
)
from protocol.records.errors import RecordsError
from protocol.records.header import LENGTH_OFFSET
from storage.filesystem import File

CHUNK: Final = 1024 * 1024
"""Large enough that the system call does not matter, small enough to stay in cache."""

HEADERS: Final = 64 * 1024
"""Bytes per read where only headers are needed: mostly one index interval."""


class Ended(StrEnum):
    """Why a walk stopped, in words for a person."""

    AT_END = "at the end"
    TORN_HEADER = "fewer bytes left than a batch header has"
    TORN_BATCH = "batch reaches beyond the end of the file"
    NONSENSE = "size or magic no batch can have"
    ZEROS = "zeros, which are allocated beforehand (preallocate) or were lost in a crash"


class Walk:
    """One pass over bytes [start, end) of `file`: iterate once, then read `position` and `ended`.

    Yields (position in the file, header, chunk, position in the chunk). The chunk holds the whole
    batch, its records included. Checksums are not checked here. Raises OSError.
    """

    __slots__ = ("_chunk_size", "_end", "_file", "ended", "position")

    def __init__(self, file: File, start: int, end: int, *, chunk: int = CHUNK) -> None:
        self._file = file
        self._end = end
        self._chunk_size = chunk
        self.position = start
        """Position of the next batch: while one is being yielded, still that batch's own."""
        self.ended: Ended | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview, int]]:
        want = self._chunk_size
        while self.position < self._end:
            base = self.position
            asked = min(want, self._end - base)
            chunk = memoryview(self._file.pread(asked, base))
            have = len(chunk)
            # If the file is shorter than `end`, it ends where the read did.
            end = self._end if have == asked else base + have
            want = self._chunk_size
            at = 0
            while have - at >= HEADER_UP_TO_MAGIC:
                size = (
                    int.from_bytes(
                        chunk[at + LENGTH_OFFSET : at + LOG_OVERHEAD], "big", signed=True
                    )
                    + LOG_OVERHEAD
                )
                if size < MIN_LEGACY_SIZE + LOG_OVERHEAD:
                    zeros = not any(chunk[at : at + HEADER_UP_TO_MAGIC])
                    self.ended = Ended.ZEROS if zeros else Ended.NONSENSE
                    return
                if base + at + size > end:
                    self.ended = Ended.TORN_BATCH
                    return
                if size > have - at:
                    want = max(want, size)
                    break
                try:
                    header = read_header(chunk, at)
                except RecordsError:
                    self.ended = Ended.NONSENSE
                    return
                yield base + at, header, chunk, at
                at += size
                self.position = base + at
            else:
                if base + have == end and at < have:
                    self.ended = Ended.TORN_HEADER if any(chunk[at:]) else Ended.ZEROS
                    return
            if have < asked and self.position == end:
                break
        self.ended = Ended.AT_END
