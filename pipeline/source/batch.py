"""A batch query: planned once, read by tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from pipeline.source.archives import forget_archives
from pipeline.source.options import SourceOptions, is_timed
from storage.reader.scan import (
    Kind,
    PartitionRange,
    Position,
    Positions,
    ScanError,
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
    return read_task(partition.value, columns)


def partitions_of(tasks: Sequence[ScanTask], options: SourceOptions) -> list[InputPartition]:
    """Return a Spark partition for each task."""
    lenient = not options.fail_on_data_loss
    return [LogPartition(replace(task, is_lenient=lenient)) for task in tasks]


class LogReader(DataSourceReader):  # type: ignore[misc]
    """Plans in the driver's Python, reads in the executors'."""

    def __init__(self, options: SourceOptions, columns: list[str]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """Plan a partition per task. Raises BadOption, the scan errors, OSError."""
        options = self._options
        selected = options.selected()
        start, end = options.start.positions(selected), options.end.positions(selected)
        planned = plan(replace(options.request, start=start, end=end))
        for found in planned.partitions:
            _check(found, start, end, options)
        # Without partitions Spark would read one that is None.
        return partitions_of(planned.tasks, options) or [LogPartition(NOTHING)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read a partition. Raises the scan errors, OSError."""
        assert isinstance(partition, LogPartition)
        return read_partition(partition, self._columns)


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


def _check(found: PartitionRange, start: Positions, end: Positions, options: SourceOptions) -> None:
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
