"""Walking a record file batch by batch, in large reads.

Everything that has to look at many batches goes through here: recovery, producer state rebuilding,
timestamp search, the offline reader. One `pread` brings a megabyte; headers are unpacked from it
one after the other; a batch that straddles the end of a chunk is read again whole.

Reading damaged data does not raise: the walk ends and says why (`Walk.ended`), so that the caller
has the good part and its length (S-REC-9).
"""

from collections.abc import Iterator
from enum import Enum
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


class Ended(Enum):
    """Why a walk stopped."""

    AT_END = "at the end"
    TORN_HEADER = "fewer bytes left than a batch header has"
    TORN_BATCH = "batch reaches beyond the end of the file"
    NONSENSE = "size or magic no batch can have"


class Walk:
    """One pass over `file`, [start, end). Iterate it once; then `position` and `ended` hold.

    Yields (position in the file, header, chunk, position in the chunk). The chunk holds the batch
    whole, so checksum and records can be taken from it. Checksums are not looked at here.
    """

    __slots__ = ("_chunk_size", "_end", "_file", "ended", "position")

    def __init__(self, file: File, start: int, end: int, *, chunk: int = CHUNK) -> None:
        self._file = file
        self._end = end
        self._chunk_size = chunk
        self.position = start
        """Where the next batch starts: after the last one yielded once its turn is over."""
        self.ended: Ended | None = None

    def __iter__(self) -> Iterator[tuple[int, BatchHeader, memoryview, int]]:
        want = self._chunk_size
        while self.position < self._end:
            base = self.position
            asked = min(want, self._end - base)
            chunk = memoryview(self._file.pread(asked, base))
            have = len(chunk)
            # A file shorter than it was said to be ends where it ends.
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
                    self.ended = Ended.NONSENSE
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
                    self.ended = Ended.TORN_HEADER
                    return
            if have < asked and self.position == end:
                break
        self.ended = Ended.AT_END
