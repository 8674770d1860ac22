"""A topic as an Arrow dataset: a query reads only the parts of the log and the columns it needs.

Engines that read Arrow datasets (DuckDB, Polars, Arrow's own) pass the columns and the filter of a
query. Arrow finds the parts of the log that the filter excludes: each task of a plan becomes a
fragment that guarantees its topic, partition, offsets and times, by which Arrow simplifies the
filter. The remaining tasks are read in the order of offsets and filtered row by row.
"""

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs as arrow_fs

from storage.filesystem import FileSystem
from storage.os_filesystem import OsFileSystem
from storage.reader.arrow.metering import MeteredFileSystem
from storage.reader.arrow.reading import read_task
from storage.reader.arrow.schema import LEAST_MS, MOST_MS, WITH_MS, schema_of
from storage.reader.scan import IsolationLevel, ScanPlan, ScanRequest, ScanTask, plan

GRAIN: Final = 8 * 1024 * 1024
"""Bytes of log that a filter takes or leaves out. The indexes would allow smaller tasks, but each
task costs some time."""

Columns = Sequence[str] | Mapping[str, Any] | None


class Scanned:
    """Counts of what queries have read of a dataset so far."""

    def __init__(self, fs: FileSystem) -> None:
        self.fs = MeteredFileSystem(fs)
        self.tasks = 0
        """Parts of the log that were read."""
        self.tasks_left_out = 0
        """Parts that a filter made unnecessary."""
        self.tasks_believed_late = 0
        """Those of `tasks_left_out` that were left out only because of `lateness_ms`."""
        self.failure: Exception | None = None
        """The exception that ended the last failed query; an engine may wrap it in its own."""

    @property
    def bytes(self) -> int:
        """Bytes read of all files, indexes included."""
        return self.fs.bytes_read


class LogDataset(ds.Dataset):  # type: ignore[misc]
    """The records of a request. Each query plans again, so it sees records appended since."""

    _request: ScanRequest
    _filter: Any
    scanned: Scanned

    def __init__(
        self, request: ScanRequest, fs: FileSystem | None = None, *, only: Any = None
    ) -> None:
        # Do not call the base class: its initialiser is for Arrow's own datasets.
        self._request = replace(
            request, with_times=True, split_bytes=min(request.split_bytes or GRAIN, GRAIN)
        )
        self._filter = only
        self.scanned = Scanned(OsFileSystem() if fs is None else fs)

    def __reduce__(self) -> Any:
        return LogDataset, (self._request,)

    @property
    def schema(self) -> pa.Schema:
        """`WITH_MS`."""
        return WITH_MS

    @property
    def partition_expression(self) -> Any:
        """The guarantee for all rows: none."""
        return pc.scalar(True)

    def plan(self, filter: Any = None) -> ScanPlan:
        """Return what a query with that filter reads. Raises the scan errors, OSError."""
        whole = plan(self._request, self.scanned.fs)
        condition = self._both(filter)
        if condition is None:
            return whole
        kept = tuple(whole.tasks[index] for index in _surviving(whole.tasks, condition))
        return replace(whole, tasks=kept)

    def scanner(self, columns: Columns = None, filter: Any = None, **options: Any) -> "LogScanner":
        """Return a scanner like `pyarrow.dataset.Scanner`, whose `options` have no effect."""
        condition = self._both(filter)
        return LogScanner(self._batches(condition, _needed(columns, condition)), columns, condition)

    def filter(self, expression: Any) -> "LogDataset":
        """Return the same dataset with a filter for every query."""
        other = LogDataset(self._request, only=self._both(expression))
        other.scanned = self.scanned
        return other

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not possible."""
        raise NotImplementedError("the columns of a log are what they are")

    def get_fragments(self, filter: Any = None) -> NoReturn:
        """Not possible: the parts of a log are no files of a format that Arrow knows."""
        raise NotImplementedError("a log has no fragments; see `plan`")

    def _both(self, expression: Any) -> Any:
        if self._filter is None or expression is None:
            return expression if self._filter is None else self._filter
        return self._filter & expression

    def _batches(self, condition: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
        scanned = self.scanned
        try:
            whole = plan(self._without_excluded(condition), scanned.fs).tasks
            kept = self._left_in(whole, condition)
            for index in kept:
                scanned.tasks += 1
                yield from read_task(whole[index], names, fs=scanned.fs)
        except Exception as error:
            scanned.failure = error
            raise

    def _left_in(self, tasks: Sequence[ScanTask], condition: Any) -> Sequence[int]:
        """Return the indexes of the tasks that the condition leaves in, and count the others."""
        if condition is None:
            return range(len(tasks))
        kept = _surviving(tasks, condition)
        self.scanned.tasks_left_out += len(tasks) - len(kept)
        if len(kept) < len(tasks) and any(task.oldest is not None for task in tasks):
            exact = [replace(task, oldest=None) for task in tasks]
            self.scanned.tasks_believed_late += len(_surviving(exact, condition)) - len(kept)
        return kept

    def _without_excluded(self, condition: Any) -> ScanRequest:
        """Return the request without the partitions that the condition excludes whole.

        Which records of a partition are committed is found out in its log, which is read from the
        newest producer snapshot on. So see first, by the indexes alone, what is wanted of it.
        """
        request = self._request
        if condition is None or request.isolation is not IsolationLevel.READ_COMMITTED:
            return request
        rough = replace(request, isolation=IsolationLevel.READ_UNCOMMITTED)
        tasks = plan(rough, self.scanned.fs).tasks
        wanted = {tasks[index].topic_partition for index in _surviving(tasks, condition)}
        excluded = [task for task in tasks if task.topic_partition not in wanted]
        if not excluded:
            return request
        self._left_in(excluded, condition)
        return replace(request, topics=None, pattern=None, assign=tuple(sorted(wanted)))


class LogScanner:
    """One pass over a dataset, filtered and projected batch by batch in the caller's thread.

    Arrow's own scanner reads ahead in threads, which outlive a query that ends early.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], columns: Columns, condition: Any) -> None:
        self._batches = batches
        self._columns = columns
        self._condition = condition

    @property
    def dataset_schema(self) -> pa.Schema:
        """`WITH_MS`."""
        return WITH_MS

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the result."""
        if not isinstance(self._columns, Mapping):
            return WITH_MS if self._columns is None else schema_of(self._columns)
        nothing = ds.InMemoryDataset(WITH_MS.empty_table())
        return nothing.scanner(columns=self._columns).projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result, without empty batches. Raises the scan errors, OSError."""
        for batch in self._batches:
            table = pa.Table.from_batches([batch])
            if isinstance(self._columns, Mapping):
                found = ds.InMemoryDataset(table)
                table = found.to_table(columns=self._columns, filter=self._condition)
            else:
                if self._condition is not None:
                    table = table.filter(self._condition)
                table = table.select(self.projected_schema.names)
            yield from (one for one in table.to_batches() if one.num_rows)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the result as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return the whole result."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows; stops reading when it has them."""
        batches: list[pa.RecordBatch] = []
        left = num_rows
        for batch in self.to_batches():
            batches.append(batch.slice(0, left))
            left -= len(batches[-1])
            if left <= 0:
                break
        return pa.Table.from_batches(batches, self.projected_schema)

    def count_rows(self) -> int:
        """Return the number of rows of the result."""
        return sum(batch.num_rows for batch in self.to_batches())


def _needed(columns: Columns, condition: Any) -> list[str]:
    """Return the columns that must be decoded, and perhaps more: expressions are not parsed, but
    searched for the names of columns."""
    if columns is None:
        return list(WITH_MS.names)
    texts = [str(one) for one in columns.values()] if isinstance(columns, Mapping) else []
    texts += [] if condition is None else [str(condition)]
    named = set(columns) if not isinstance(columns, Mapping) else set()
    named.update(*(re.findall(r"\w+", text) for text in texts))
    return [name for name in WITH_MS.names if name in named] or ["offset"]


_STAMP: Final = WITH_MS.field("timestamp").type


def _surviving(tasks: Sequence[ScanTask], condition: Any) -> list[int]:
    """Return the indexes of the tasks that may hold a row for which the condition is true."""
    form, nowhere = ds.IpcFileFormat(), arrow_fs.LocalFileSystem()
    fragments = [
        form.make_fragment(str(index), nowhere, partition_expression=_guarantee(task))
        for index, task in enumerate(tasks)
    ]
    found = ds.FileSystemDataset(fragments, WITH_MS, form, nowhere).get_fragments(condition)
    return sorted(int(fragment.path) for fragment in found)


def _guarantee(task: ScanTask) -> Any:
    """Return an expression that holds for every row of a task."""
    true = (
        (pc.field("topic") == task.topic)
        & (pc.field("partition") == pa.scalar(task.partition, pa.int32()))
        & (pc.field("offset") >= task.start_offset)
        & (pc.field("offset") < task.end_offset)
    )
    for bound, holds in ((task.newest, operator.le), (task.oldest, operator.ge)):
        if bound is not None and bound >= -(2**63):  # a long lateness goes below
            true = true & holds(pc.field("timestampMs"), bound)
            if LEAST_MS <= bound <= MOST_MS:
                true = true & holds(pc.field("timestamp"), pa.scalar(bound * 1000, _STAMP))
    return true
