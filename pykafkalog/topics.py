"""Topics of log directories in Arrow: what `pykafkalog.reader.open_topics` gives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.reader.scan import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    Position,
    Positions,
    ScanPlan,
    ScanRequest,
    plan,
)

Place = int | datetime | str
"""An offset, a time, "earliest" or "latest"."""


def open_topics(
    directories: str | PurePath | Sequence[str | PurePath],
    topics: str | Sequence[str] | None = None,
    *,
    pattern: str | None = None,
    start: Place | Mapping[TopicPartition, Place] = "earliest",
    end: Place | Mapping[TopicPartition, Place] = "latest",
    isolation: str = "read_uncommitted",
    beyond_high_watermark: bool = False,
    lateness_ms: int | None = None,
    fs: FileSystem | None = None,
) -> "TopicReader":
    """Topics by name, or all whose names match `pattern`; without either all but internal ones.

    `directories` are log directories or copies of them, or directories of partitions. `start` and
    `end` (exclusive) hold for each partition, or say it for some of them; a time means the first
    record dated so or later. `isolation` is Kafka's `isolation.level`. Records at or above the high
    watermark (with `read_committed`: the last stable offset) are left out, unless
    `beyond_high_watermark`. `lateness_ms`: see `TopicReader.dataset`.

    Nothing is read yet. Raises ValueError for what makes no sense.
    """
    if isinstance(directories, str | PurePath):
        directories = [directories]
    request = ScanRequest(
        directories=tuple(str(one).rstrip("/") or "/" for one in directories),
        topics=(topics,) if isinstance(topics, str) else None if topics is None else tuple(topics),
        pattern=pattern,
        start=_positions(start, EARLIEST),
        end=_positions(end, LATEST),
        isolation=IsolationLevel(isolation),
        beyond_high_watermark=beyond_high_watermark,
        lateness_ms=lateness_ms,
    )
    return TopicReader(request, fs)


def _positions(place: Place | Mapping[TopicPartition, Place], default: Position) -> Positions:
    if isinstance(place, Mapping):
        return Positions(default, {where: _position(one) for where, one in place.items()})
    return Positions(_position(place))


def _position(place: Place) -> Position:
    match place:
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
        case datetime():
            return Position.timestamp(-int(-place.timestamp() * 1000 // 1))
        case int():
            return Position.offset(place)
    raise ValueError(f"{place!r} is no offset, no datetime, and neither earliest nor latest")


class TopicReader:
    """Records of topics as Arrow sees them (needs pyarrow: the extras `sql` and `spark` have it).

    Columns are `SCHEMA`'s, those of Spark's kafka source; control records are no rows. Every method
    looks at the directories anew, and raises `ScanError` (`UnknownTopic`, `CorruptLog`,
    `RecordsGone`, …), CheckpointError, OSError.
    """

    def __init__(self, request: ScanRequest, fs: FileSystem | None = None) -> None:
        """Made by `open_topics`."""
        self._request = request
        self._fs = fs

    def plan(self) -> ScanPlan:
        """What would be read: offsets of each partition, and the parts of the log."""
        return plan(self._request, self._fs)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """`pyarrow.RecordBatch`es, partition by partition in the order of offsets."""
        from storage.reader.arrow import read_task

        for task in self.plan().tasks:
            yield from read_task(task, columns, fs=self._fs)

    def to_reader(self, columns: Sequence[str] | None = None) -> Any:
        """A `pyarrow.RecordBatchReader`: one pass, a few megabytes in memory."""
        import pyarrow

        from storage.reader.arrow import schema_of

        return pyarrow.RecordBatchReader.from_batches(schema_of(columns), self.batches(columns))

    def to_table(self, columns: Sequence[str] | None = None) -> Any:
        """A `pyarrow.Table`, all in memory; its `to_pandas()` is a data frame."""
        return self.to_reader(columns).read_all()

    def dataset(self) -> Any:
        """A lazy `pyarrow.dataset.Dataset`, which DuckDB and Polars take: columns and filters of a
        query decide what is read.

        A filter by partition or offset leaves out what it can, one by `timestamp` what is too old.
        What lies behind a range of times is left out only if `lateness_ms` says that no record is
        older than one before it by more than that.
        """
        from storage.reader.arrow.dataset import LogDataset

        return LogDataset(replace(self._request), self._fs)
