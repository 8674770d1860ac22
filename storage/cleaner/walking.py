"""Batches of closed segments, piece by piece, for both passes of a cleaning.

A pass is interrupted between two pieces, and continues in the child's next step. Bytes that are no
batch, or a wrong checksum, end the cleaning (`UncleanableLog`): rewriting would give damaged bytes
a good checksum (decision 52). (Kafka's cleaner does not check checksums.)
"""

from collections.abc import Iterator, Sequence
from typing import Final

from storage.cleaner.errors import UncleanableLog, UncleanableReason
from storage.cleaner.request import SourceSegment
from storage.cleaner.retained import Columns
from storage.filesystem import File, FileSystem
from storage.log.scan import Ended
from storage.paths import log_file
from storage.reader.columns import batch_columns, checksums_hold
from storage.reader.frames import Frames, FrameWalk

_PIECE: Final = 4 << 20
"""Bytes read at once: enough that the work per piece costs little per record."""


class SegmentWalk:
    """One pass over some segments, in their order. `position` is in the segment `current`."""

    __slots__ = ("_at", "_directory", "_file", "_fs", "_piece", "_segments", "position")

    def __init__(
        self, fs: FileSystem, directory: str, segments: Sequence[SourceSegment], io_bytes: int
    ) -> None:
        """`io_bytes`: the fewest bytes to read at once."""
        self._fs = fs
        self._directory = directory
        self._segments = segments
        self._piece = max(_PIECE, io_bytes)
        self._at = 0
        self._file: File | None = None
        self.position = 0

    @property
    def index(self) -> int:
        """The index of `current` in the segments."""
        return self._at

    @property
    def current(self) -> SourceSegment | None:
        """The current segment; None after the last one."""
        return self._segments[self._at] if self._at < len(self._segments) else None

    @property
    def is_at_end(self) -> bool:
        """Whether the current segment is read to its end."""
        current = self.current
        return current is None or self.position >= current.size

    @property
    def where(self) -> str:
        """The current place, for messages."""
        current = self.current
        assert current is not None
        return f"{log_file(self._directory, current.base_offset)}, near {self.position}"

    def next_segment(self) -> None:
        """Go to the beginning of the next one."""
        self.close()
        self._at += 1
        self.position = 0

    def pieces(self) -> Iterator[tuple[Frames, Columns]]:
        """The rest of the current segment in pieces; `position` is behind each when it is yielded.

        Raises UncleanableLog, OSError.
        """
        current = self.current
        assert current is not None
        path = log_file(self._directory, current.base_offset)
        if self._file is None:
            self._file = self._fs.open(path, writable=False)
        walk = FrameWalk(self._file, self.position, current.size, chunk=self._piece)
        for frames in walk:
            batches = batch_columns(frames)
            good = checksums_hold(frames, batches)
            if not good.all():
                at = frames.position + frames.starts[int((~good).argmax())]
                raise _corrupt(path, f"checksum of the batch at {at} does not hold")
            self.position = walk.position
            yield frames, batches
        if self.position != current.size or walk.ended is not Ended.AT_END:
            raise _corrupt(path, f"{walk.ended} at {self.position} of {current.size} bytes")

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _corrupt(path: str, what: str) -> UncleanableLog:
    return UncleanableLog(UncleanableReason.CORRUPT_BATCH, f"{path}: {what}")
