"""From a request to tasks: ranges of offsets, found by indexes and bounded by what is committed.

For each partition in this order, because a log that grows meanwhile can then only exceed the bounds
read before: checkpoints → segments → end of the log → transactions → offsets of the range → a task
for each segment that it touches, or several for a large one. Reads indexes and heads of batches,
and records only to find a position by timestamp.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.os_filesystem import OsFileSystem
from storage.reader.partition import PartitionView
from storage.reader.read_only import ReadOnlyFileSystem
from storage.reader.scan.bounds import Bounds, CheckpointReader, bounds_of
from storage.reader.scan.errors import ScanError
from storage.reader.scan.request import IsolationLevel, Kind, Position, ScanRequest
from storage.reader.scan.seek import MOST, SegmentSeeker
from storage.reader.scan.segments import SegmentPlace, segments_of
from storage.reader.scan.selecting import select
from storage.reader.scan.tasks import PartitionRange, ScanPlan, ScanTask
from storage.reader.scan.transactions import TransactionReader, Transactions

_ATTEMPTS = 5
"""A listed segment may be replaced before it is opened; then the partition is planned again."""


def plan(request: ScanRequest, fs: FileSystem | None = None) -> ScanPlan:
    """Return what to read for `request`. `fs` is only read.

    Raises the scan errors (`UnknownTopic`, `NoLogDirectory`, `CorruptLog`), CheckpointError,
    OSError.
    """
    committed = request.isolation is IsolationLevel.READ_COMMITTED
    if committed and request.beyond_high_watermark:
        raise ScanError("what is beyond the high watermark is not committed: choose one of both")
    fs = ReadOnlyFileSystem(OsFileSystem() if fs is None else fs)
    partitions: list[PartitionRange] = []
    tasks: list[ScanTask] = []
    selected = select(request, fs)
    checkpoints = CheckpointReader(fs)
    for where, directory in selected:
        planner = PartitionPlanner(fs, request, where, directory, checkpoints)
        found, of_it = planner.plan()
        partitions.append(found)
        tasks += of_it
    return ScanPlan(tasks=tuple(tasks), partitions=tuple(partitions))


class PartitionPlanner:
    """Plans one partition."""

    def __init__(
        self,
        fs: FileSystem,
        request: ScanRequest,
        where: TopicPartition,
        directory: str,
        checkpoints: CheckpointReader,
    ) -> None:
        self._fs = fs
        self._request = request
        self._where = where
        self._directory = directory
        self._checkpoints = checkpoints

    def plan(self) -> tuple[PartitionRange, list[ScanTask]]:
        """Return the partition's range and tasks."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._plan()
            except FileNotFoundError:
                continue
        return self._plan()

    def _plan(self) -> tuple[PartitionRange, list[ScanTask]]:
        request, where, directory = self._request, self._where, self._directory
        segments = segments_of(self._fs, directory)
        bounds = bounds_of(self._fs, directory, where, segments, self._checkpoints)
        transactions: Transactions | None = None
        limit = bounds.log_end_offset if request.beyond_high_watermark else bounds.high_watermark
        if request.isolation is IsolationLevel.READ_COMMITTED:
            view = PartitionView(directory, self._fs)
            reader = TransactionReader(self._fs, view, segments)
            transactions = reader.read(bounds.log_start_offset, bounds.high_watermark)
            limit = max(transactions.last_stable_offset, bounds.log_start_offset)
        start = self._offset(request.start.of(where), segments, bounds, limit)
        end = max(self._offset(request.end.of(where), segments, bounds, limit), start)
        found = PartitionRange(
            directory=directory,
            topic=where.topic,
            partition=where.partition,
            start_offset=start,
            end_offset=end,
            log_start_offset=bounds.log_start_offset,
            high_watermark=bounds.high_watermark,
            is_high_watermark_known=bounds.is_known,
            last_stable_offset=None if transactions is None else limit,
            log_end_offset=bounds.log_end_offset,
            segments=len(segments),
            bytes=sum(segment.size for segment in segments),
        )
        return found, self._tasks(segments, start, end, transactions)

    def _offset(
        self, position: Position, segments: list[SegmentPlace], bounds: Bounds, limit: int
    ) -> int:
        first = bounds.log_start_offset
        match position.kind:
            case Kind.EARLIEST:
                return first
            case Kind.LATEST:
                return limit
            case Kind.OFFSET:
                return min(max(position.value, first), limit)
            case Kind.TIMESTAMP:
                return self._offset_of_time(segments, position.value, first, limit)

    def _offset_of_time(
        self, segments: list[SegmentPlace], timestamp: int, first: int, limit: int
    ) -> int:
        for place in segments:
            if place.until is not None and place.until <= first:
                continue
            if place.base_offset >= limit:
                break
            with self._seeker(place) as seeker:
                found = seeker.offset_of(timestamp, first)
            if found is not None:
                return min(found, limit)
        return limit

    def _seeker(self, place: SegmentPlace) -> SegmentSeeker:
        return SegmentSeeker.opened(self._fs, self._where, self._directory, place)

    def _tasks(
        self,
        segments: list[SegmentPlace],
        start: int,
        end: int,
        transactions: Transactions | None,
    ) -> list[ScanTask]:
        tasks: list[ScanTask] = []
        _, before = self._request.timestamps
        lateness, now = self._request.lateness_ms, self._now
        newest: int | None = None
        for place in segments:
            low = max(start, place.base_offset)
            high = end if place.until is None else min(end, place.until)
            if place.base_offset >= end:
                break
            if low >= high and lateness is None:
                continue
            with self._seeker(place) as seeker:
                if lateness is not None and before is not None:
                    if newest is not None and newest - lateness >= before:
                        break  # no later record is dated so early
                    reached = seeker.reached(before + lateness, now)
                    high = high if reached is None else min(high, reached)
                found = self._tasks_of(seeker, low, high, transactions)
                tasks += [self._timed(seeker, task, newest) for task in found]
                if lateness is not None:
                    newest = _later(newest, seeker.newest_seen(now))
        return tasks

    @property
    def _now(self) -> int:
        now = self._request.now_ms
        return MOST if now is None else now

    def _timed(self, seeker: SegmentSeeker, task: ScanTask, newest_before: int | None) -> ScanTask:
        """Return the task, with its times if requested. `newest_before`: of earlier segments."""
        request = self._request
        if not request.with_times:
            return task
        oldest = None
        if request.lateness_ms is not None:
            below = _later(seeker.newest_below(task.start_offset, self._now), newest_before)
            oldest = None if below is None else below - request.lateness_ms
        newest = seeker.newest_up_to(task.end_offset - 1)
        return replace(task, newest=newest, oldest=oldest)

    def _tasks_of(
        self, seeker: SegmentSeeker, low: int, high: int, transactions: Transactions | None
    ) -> list[ScanTask]:
        request, place = self._request, seeker.place
        since, before = request.timestamps
        if since is not None:
            newest = seeker.newest_timestamp()
            if newest is not None and newest < since:
                return []
            low = max(low, seeker.first_after(since))
        if low >= high:
            return []
        start_position, end_position = 0, seeker.size
        if low > place.base_offset:
            found = seeker.find(low)
            if found is None:
                return []
            start_position = found.position
        if place.until is None or high < place.until:
            end_position = seeker.end_of(high)
        cuts = [*seeker.cuts(start_position, end_position, request.split_bytes)]
        cuts = [(offset, position) for offset, position in cuts if low < offset < high]
        parts = [
            (first[0], last[0], first[1], last[1])
            for first, last in pairwise([(low, start_position), *cuts, (high, end_position)])
        ]
        if request.split_offsets:
            parts = [part for one in parts for part in self._fewer_offsets(seeker, *one)]
        return [
            ScanTask(
                directory=self._directory,
                topic=self._where.topic,
                partition=self._where.partition,
                base_offset=place.base_offset,
                start_position=start_position,
                end_position=end_position,
                start_offset=first,
                end_offset=last,
                start_timestamp=since,
                end_timestamp=before,
                aborted=None if transactions is None else transactions.touching(first, last),
            )
            for first, last, start_position, end_position in parts
        ]

    def _fewer_offsets(
        self, seeker: SegmentSeeker, low: int, high: int, start_position: int, end_position: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield parts of (offsets, positions) with at most as many offsets as requested."""
        for first in range(low, high, self._request.split_offsets):
            last = min(first + self._request.split_offsets, high)
            found = seeker.find(first) if first > low else None
            position = start_position if found is None else found.position
            yield first, last, position, seeker.end_of(last - 1) if last < high else end_position


def _later(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
