"""Lookups in a log by time: ListOffsets, and the ages of segments for the cleaner.

A damaged index met on the way is repaired (`storage.log.mending`): here and now in a log without a
broker, else the caller gets BeingRepaired. Everything raises StorageError and CORRUPT_MESSAGE, too.
"""

from storage.clock import Clock
from storage.log import times
from storage.log.guard import DiskGuard
from storage.log.looking import Look, look_here
from storage.log.mending import IndexMender
from storage.log.offsets import LogOffsets
from storage.log.results import FetchIsolation, TimestampOffset
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments


class TimeLookups:
    """Lookups by time in one log. Times are milliseconds."""

    __slots__ = ("_clock", "_guard", "_mender", "_offsets", "_segments")

    def __init__(
        self,
        segments: LogSegments,
        offsets: LogOffsets,
        guard: DiskGuard,
        mender: IndexMender,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._segments = segments
        self._offsets = offsets
        self._guard = guard
        self._mender = mender

    async def search(
        self,
        timestamp: int,
        isolation: FetchIsolation = FetchIsolation.LOG_END,
        look: Look = look_here,
    ) -> TimestampOffset | None:
        """The first record visible at `isolation` with `timestamp` or a later one (S-TS-2).

        `look` opens batches that are not small. Raises what it raises, too.
        """
        offsets = self._offsets
        with self._guard.reading():
            return await self._mender.search(
                lambda: times.first_record_from(
                    self._segments, timestamp, offsets.start, offsets.visible_end(isolation), look
                )
            )

    async def search_latest(self, look: Look = look_here) -> TimestampOffset | None:
        """The first record with the greatest timestamp (-3) (S-TS-1), likewise."""
        with self._guard.reading():
            return await self._mender.search(lambda: times.latest_record(self._segments, look))

    def segments_before(self, timestamp: int, most: int) -> list[int]:
        """Bases of segments last written by `timestamp`, newest first (ListOffsets v0, S-TS-5).

        The log's end is dated now. -1 stands for now, too; -2 for the log start.
        """
        offsets = self._offsets
        with self._guard.reading():
            return times.segments_before(
                list(self._segments),
                timestamp,
                most,
                log_start_offset=offsets.start,
                log_end_offset=offsets.end,
                high_watermark=offsets.high_watermark,
                now_ms=self._clock.wall_ms(),
            )

    def largest_timestamp_of(self, segment: LogSegment) -> int:
        """`LogSegment.largest_timestamp`; may open files."""
        with self._guard.reading():
            return self._mender.answer(segment.largest_timestamp)

    def first_timestamp_of(self, segment: LogSegment) -> int:
        """`LogSegment.read_first_timestamp`; may open files."""
        with self._guard.reading():
            return segment.read_first_timestamp()
