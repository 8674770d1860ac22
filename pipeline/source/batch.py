"""A batch query: planned once, read by tasks.

Spark 4.1 and later tell the conditions of a query (`pushFilters`). The bounds they set narrow the
plan; Spark evaluates the conditions nevertheless, so a bound may be too wide, but not too narrow.

But Spark, 4.3 included, keeps the narrowed plan with the loaded DataFrame, not with the query: any
other query over the same DataFrame, and any other condition in the same query, may get it too, and
lack rows. So a job has to ask for it (`pushDownPredicate`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pipeline.source.archives import forget_archives
from pipeline.source.options import SourceOptions, is_timed
from pipeline.source.pushed import Pushed
from pipeline.source.telling import telling
from storage.reader.scan import (
    EARLIEST,
    LATEST,
    Kind,
    PartitionRange,
    Position,
    Positions,
    ScanError,
    ScanPlan,
    ScanRequest,
    ScanTask,
    plan,
)


class LogPartition(InputPartition):  # type: ignore[misc]
    """One task of the plan, which one Spark task reads."""

    def __init__(self, task: ScanTask) -> None:
        self.value = task


def read_partition(partition: LogPartition, columns: Sequence[str]) -> Iterator[Any]:
    """Yield a partition's records as Arrow record batches."""
    from storage.reader.arrow import read_task

    forget_archives()
    return _read(read_task(partition.value, columns))


def _read(batches: Iterator[Any]) -> Iterator[Any]:
    with telling():
        yield from batches


def planned(request: ScanRequest, options: SourceOptions) -> ScanPlan:
    """Plan a query, in as many tasks as it asks for. Raises the scan errors, OSError."""
    found = plan(request)
    if len(found.tasks) >= options.min_partitions:
        return found
    offsets = sum(task.end_offset - task.start_offset for task in found.tasks)
    each = max(-(-offsets // options.min_partitions), 1)
    return plan(replace(request, split_offsets=min(each, request.split_offsets or each)))


def partitions_of(tasks: Sequence[ScanTask], options: SourceOptions) -> list[InputPartition]:
    """Return a Spark partition for each task."""
    lenient = not options.fail_on_data_loss
    return [LogPartition(replace(task, is_lenient=lenient)) for task in tasks]


class LogReader(DataSourceReader):  # type: ignore[misc]
    """Plans in the driver's Python, reads in the executors'."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns
        self._pushed = Pushed()

    def partitions(self) -> Sequence[InputPartition]:
        """Plan a partition per task. Raises BadOption, the scan errors, OSError."""
        with telling():
            # Without partitions Spark would read one that is None.
            return self._partitions() or [LogPartition(NOTHING)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition. Raises the scan errors, OSError."""
        assert isinstance(partition, LogPartition)
        return read_partition(partition, self._columns)

    def _partitions(self) -> list[InputPartition]:
        options = self._options
        selected = options.selected()
        start, end = options.start.positions(selected), options.end.positions(selected)
        request = replace(options.request, start=start, end=end)
        found = planned(request, options)
        for one in found.partitions:
            check(one, start, end, options)
        if not self._pushed:
            return partitions_of(found.tasks, options)
        ranges = self._pushed.of(found.partitions)
        start = Positions(EARLIEST, {where: Position.offset(r[0]) for where, r in ranges.items()})
        end = Positions(LATEST, {where: Position.offset(r[1]) for where, r in ranges.items()})
        narrow = replace(
            request,
            topics=None,
            pattern=None,
            assign=tuple(ranges),
            start=start,
            end=end,
            timestamps=self._pushed.times,
        )
        found = planned(narrow, options)
        for one in found.partitions:
            check(one, start, end, options)
        return partitions_of(found.tasks, options)


class PushingLogReader(LogReader):
    """A reader that reads what the conditions of a query leave (Spark 4.1 and later)."""

    def pushFilters(self, filters: Sequence[Any]) -> Sequence[Any]:
        """Take the bounds of the conditions. Returns them all: Spark evaluates them too."""
        self._pushed.add(filters)
        return filters


NOTHING = ScanTask(
    directory="",
    topic="",
    partition=0,
    base_offset=0,
    start_position=0,
    end_position=0,
    start_offset=0,
    end_offset=0,
)
"""A task without records, for a query over empty topics."""


def limit_of(found: PartitionRange, options: SourceOptions) -> int:
    """Return the offset before which a partition may be read."""
    if options.request.beyond_high_watermark:
        return found.log_end_offset
    stable = found.last_stable_offset
    return found.high_watermark if stable is None else stable


def check(found: PartitionRange, start: Positions, end: Positions, options: SourceOptions) -> None:
    """Raise ScanError for a start or end that is not in the log, as the kafka source does."""
    where = found.topic_partition
    begin, limit = start.of(where), limit_of(found, options)
    if is_timed(begin) and options.start_is_strict and found.start_offset == limit:
        raise ScanError(
            f"{where} has no record dated {begin.value} ms or later "
            "(startingOffsetsByTimestampStrategy=latest reads nothing of it then)"
        )
    if options.fail_on_data_loss:
        for position in (begin, end.of(where)):
            check_there(found, position, limit)


def check_there(found: PartitionRange, position: Position, limit: int) -> None:
    """Raise ScanError for an offset outside of the log (failOnDataLoss)."""
    if position.kind is not Kind.OFFSET:
        return
    if not found.log_start_offset <= position.value <= limit:
        raise ScanError(
            f"{found.topic_partition}: offset {position.value} is not in the log, which has "
            f"{found.log_start_offset} to {limit}; some data may have been lost "
            "(failOnDataLoss=false reads what is left)"
        )
