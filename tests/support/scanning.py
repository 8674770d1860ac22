"""Reads a log by a scan plan, and record by record, to compare the two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from protocol.records.batch import TimestampType
from protocol.records.record import Record
from storage.filesystem import FileSystem
from storage.reader import PartitionView
from storage.reader.arrow import read_task
from storage.reader.scan import ScanPlan, ScanRequest, plan


class ScannedRow(NamedTuple):
    """One row of Arrow as Python values."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since the epoch."""
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...]


def rows_of(batches: Sequence[Any]) -> list[ScannedRow]:
    """Return the rows of record batches that have all columns."""
    rows = []
    for batch in batches:
        batch.validate(full=True)
        columns = [column.to_pylist() for column in batch.columns[:5]]
        stamps = [value // 1000 for value in batch["timestamp"].cast("int64").to_pylist()]
        kinds = batch["timestampType"].to_pylist()
        headers = [
            () if one is None else tuple((pair["key"], pair["value"]) for pair in one)
            for one in batch["headers"].to_pylist()
        ]
        assert () not in [h for h in batch["headers"].to_pylist() if h is not None]
        rows += [ScannedRow(*each) for each in zip(*columns, stamps, kinds, headers, strict=True)]
    return rows


def scanned(request: ScanRequest, fs: FileSystem | None = None, **options: Any) -> list[ScannedRow]:
    """Plan and read."""
    return read_plan(plan(request, fs), fs, **options)


def read_plan(planned: ScanPlan, fs: FileSystem | None = None, **options: Any) -> list[ScannedRow]:
    """Read all tasks of a plan, one after the other."""
    return [row for task in planned.tasks for row in rows_of([*read_task(task, fs=fs, **options)])]


@dataclass(frozen=True)
class Plain:
    """A record with fields of its batch."""

    record: Record
    timestamp_type: int
    is_control: bool
    is_transactional: bool
    producer_id: int


def plain_records(view: PartitionView) -> list[Plain]:
    """Return every record of the files, decoded one by one."""
    return [
        Plain(
            record,
            -1 if batch.header.magic == 0 else int(batch.header.timestamp_type),
            batch.header.is_control,
            batch.header.is_transactional,
            batch.header.producer_id,
        )
        for segment in view.segments()
        for batch in segment.batches()
        for record in batch.records()
    ]


def row_of(plain: Plain, topic: str, partition: int) -> ScannedRow:
    """Return the row that the columns should have."""
    record = plain.record
    return ScannedRow(
        record.key,
        record.value,
        topic,
        partition,
        record.offset,
        record.timestamp,
        plain.timestamp_type,
        tuple(record.headers),
    )


assert int(TimestampType.LOG_APPEND_TIME) == 1
