"""Finds where batches begin, a chunk of the record file at a time: a faster `Walk`.

`Walk` (storage.log.scan) decides what is a batch and why a file ends; it also makes an object of
every header. Here the common case, a format 2 batch that lies whole in the chunk, is recognised by
its size and magic alone. At anything else the chunk ends and `Walk` reads on, so the two can never
disagree.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from protocol.records.batch import BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC_OFFSET
from protocol.records.header import LENGTH_OFFSET
from storage.filesystem import File
from storage.log.scan import Ended, Walk

FRAMES_CHUNK: Final = 8 * 1024 * 1024

_size_at = Struct(">i").unpack_from


class Frames:
    """Some adjacent whole batches."""

    __slots__ = ("chunk", "legacy", "position", "starts")

    def __init__(self, chunk: memoryview, position: int, starts: list[int], legacy: bool) -> None:
        self.chunk = chunk
        self.position = position
        """Position of the chunk in the record file."""
        self.starts = starts
        """Position of each batch in the chunk."""
        self.legacy = legacy
        """Whether the batches are of formats 0 and 1; a chunk never mixes them with format 2."""


class FrameWalk:
    """One pass over bytes [start, end) of `file`; read `position` and `ended` afterwards."""

    __slots__ = ("_chunk", "_end", "_file", "ended", "position")

    def __init__(self, file: File, start: int, end: int, *, chunk: int = FRAMES_CHUNK) -> None:
        self._file = file
        self._end = end
        self._chunk = chunk
        self.position = start
        """The end of the good part, as far as it was read."""
        self.ended: Ended | None = None

    def __iter__(self) -> Iterator[Frames]:
        while self.ended is None:
            base = self.position
            asked = min(self._chunk, self._end - base)
            chunk = memoryview(self._file.pread(asked, base)) if asked > 0 else memoryview(b"")
            starts, after = _plain_frames(chunk)
            if starts:
                self.position = base + after
                yield Frames(chunk[:after], base, starts, legacy=False)
            else:
                yield from self._one()

    def _one(self) -> Iterator[Frames]:
        """Read by `Walk`: legacy batches up to one of format 2, or one larger than a chunk."""
        walk = Walk(self._file, self.position, self._end)
        batch = _NOTHING
        starts: list[int] = []
        first = 0
        asked = self.position
        for position, header, chunk, at in walk:
            if starts and (chunk is not batch or header.magic >= 2):
                yield Frames(batch, first, starts, legacy=True)
                starts = []
            if header.magic >= 2:
                if position > asked:
                    return  # the quick way again
                self.position = position + header.size
                yield Frames(chunk[at : at + header.size], position, [0], legacy=False)
                return
            if chunk is not batch:
                batch, first = chunk, position - at
            starts.append(at)
            self.position = position + header.size
        if starts:
            yield Frames(batch, first, starts, legacy=True)
        self.ended = walk.ended
        self.position = walk.position


_NOTHING: Final = memoryview(b"")


def _plain_frames(chunk: memoryview) -> tuple[list[int], int]:
    """Starts of the format 2 batches that lie whole in the chunk, and where the last one ends."""
    starts: list[int] = []
    add = starts.append
    have = len(chunk)
    at = 0
    while have - at >= BATCH_OVERHEAD:
        size = _size_at(chunk, at + LENGTH_OFFSET)[0] + LOG_OVERHEAD
        if size < BATCH_OVERHEAD or at + size > have or chunk[at + MAGIC_OFFSET] != 2:
            break
        add(at)
        at += size
    return starts, at
