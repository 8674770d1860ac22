"""A segment whose offsets lie too far apart for its indexes, met by a cleaning (S-CMP-15).

Only cleaners of old Kafka versions made such segments (KAFKA-6264), and a start splits those that
it reads (`storage.splitting`). If a cleaning meets one first, it copies it into pieces, each a
segment of its own, and ends. The next cleaning finds the pieces.
"""

from storage.cleaner.aborted import with_markers_in
from storage.cleaner.output import CleanedWriter
from storage.cleaner.request import (
    CleanedSegment,
    CleanerStats,
    CleanRequest,
    RewriteStep,
    SourceSegment,
)
from storage.cleaner.retained import Columns
from storage.cleaner.walking import SegmentWalk
from storage.filesystem import FileSystem
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.reader.frames import Frames


class SegmentSplitter:
    """Copies one segment into pieces; the first one has its name, and may be empty."""

    __slots__ = ("_done", "_fs", "_last", "_out", "_request", "_source", "_walk")

    def __init__(self, fs: FileSystem, request: CleanRequest, source: SourceSegment) -> None:
        """Raises OSError."""
        self._fs = fs
        self._request = request
        self._source = source
        self._walk = SegmentWalk(fs, request.directory, (source,), request.io_buffer_bytes)
        self._out = CleanedWriter(fs, request, source.base_offset)
        self._done: list[CleanedSegment] = []
        self._last = source.base_offset - 1

    def step(self, budget: int) -> tuple[RewriteStep, ...]:
        """Copy about `budget` bytes. The last step returns one for each piece, all done.

        Raises UncleanableLog, OSError.
        """
        read = 0
        for frames, batches in self._walk.pieces():
            self._copy(frames, batches)
            read += int(batches["size"].sum())
            if read >= budget:
                break
        if not self._walk.is_at_end:
            return (_step(read, None),)
        self._end_piece()
        self._walk.close()
        return tuple(_step(read, piece) for piece in self._done)

    def close(self) -> None:
        """Close the files."""
        self._walk.close()
        self._out.close()

    def _copy(self, frames: Frames, batches: Columns) -> None:
        columns = (batches[name].tolist() for name in ("base_offset", "last_offset", "size"))
        dates = batches["max_timestamp"].tolist()
        for at, base, last, size, dated in zip(frames.starts, *columns, dates, strict=True):
            if last - self._out.base_offset > MAX_RELATIVE_OFFSET:
                self._out.write_down()
                self._end_piece()
                base_offset = max(base, self._last + 1)
                self._out = CleanedWriter(self._fs, self._request, base_offset)
            self._out.add(frames.chunk[at : at + size])
            self._out.note(size, last, dated)
            self._last = last
        self._out.write_down()

    def _end_piece(self) -> None:
        base = self._out.base_offset
        markers = with_markers_in(self._request.aborted, base, self._last)
        checksum = self._out.finish(markers, self._source.last_modified_ms)
        piece = CleanedSegment(
            base_offset=base,
            size=self._out.size,
            sources=(self._source.base_offset,),
            aborted_sum=checksum,
            leaves_open=True,
        )
        self._done.append(piece)


def _step(read: int, piece: CleanedSegment | None) -> RewriteStep:
    return RewriteStep(
        read_bytes=read,
        written_bytes=read,
        is_done=piece is not None,
        cleaned=piece,
        stats=CleanerStats(),
    )
