"""Topics of log directories in Arrow, as `pykafkalog.reader.open_topics` returns them."""

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
    """Open topics by name or by `pattern`; without either, all but internal topics.

    `directories` are log directories or copies of them, or directories of partitions. `start` and
    `end` (exclusive) are one place for every partition, or places by partition; a time means the
    first record with that timestamp or a later one. `isolation` is Kafka's `isolation.level`.
    Records at or above the high watermark (with `read_committed`: the last stable offset) are left
    out, unless `beyond_high_watermark`. `lateness_ms`: see `TopicReader.dataset`.

    Nothing is read yet. Raises ValueError for arguments that make no sense.
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
    """Records of topics as Arrow data (needs pyarrow: the extras `sql` and `spark` have it).

    Columns are `SCHEMA`'s, those of Spark's kafka source; control records are no rows. If a caller
    names `timestampMs`, that is a column too: any timestamp of Kafka's, in milliseconds. Every
    method reads the directories anew, and raises `ScanError` (`UnknownTopic`, `CorruptLog`,
    `RecordsGone`, `TimestampOutOfRange`, …), CheckpointError, OSError.
    """

    def __init__(self, request: ScanRequest, fs: FileSystem | None = None) -> None:
        """Called by `open_topics`."""
        self._request = request
        self._fs = fs

    def plan(self) -> ScanPlan:
        """Return what would be read: offsets of each partition, and the parts of the log."""
        return plan(self._request, self._fs)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yield `pyarrow.RecordBatch`es, partition by partition in the order of offsets."""
        from storage.reader.arrow import read_task

        for task in self.plan().tasks:
            yield from read_task(task, columns, fs=self._fs)

    def to_reader(self, columns: Sequence[str] | None = None) -> Any:
        """Return a `pyarrow.RecordBatchReader` for one pass, with a few megabytes in memory."""
        from storage.reader.arrow import schema_of

        schema = schema_of(columns)
        import pyarrow

        return pyarrow.RecordBatchReader.from_batches(schema, self.batches(columns))

    def to_table(self, columns: Sequence[str] | None = None) -> Any:
        """Return a `pyarrow.Table`, all in memory; its `to_pandas()` is a data frame."""
        return self.to_reader(columns).read_all()

    def dataset(self) -> Any:
        """Return a lazy `pyarrow.dataset.Dataset` for DuckDB and Polars: a query's columns and
        filters decide what is read.

        A filter by partition or offset skips batches that cannot match, one by `timestamp` batches
        that are too old. Batches after the end of a range of times are skipped only if
        `lateness_ms` is given: no record is older than one before it by more than that.

        It has a column more, `timestampMs`: any timestamp exactly, where `timestamp` may raise
        `TimestampOutOfRange`.
        """
        from storage.reader.arrow.dataset import LogDataset

        return LogDataset(replace(self._request), self._fs)
