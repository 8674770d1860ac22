"""Records of formats 0 and 1 as Arrow batches, made one by one, because only old logs have them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from protocol.records.batch import read_header, verify_crc
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from storage.reader.arrow.batches import dated, repeated
from storage.reader.arrow.chunks import Complain
from storage.reader.arrow.schema import NO_TIMESTAMP_TYPE, schema_of
from storage.reader.frames import Frames
from storage.reader.scan import ScanTask


def legacy_batch(
    frames: Frames, task: ScanTask, columns: Sequence[str] | None, complain: Complain
) -> pa.RecordBatch:
    """Return the records of a chunk that belong to the task.

    Raises what `complain` makes, and TimestampOutOfRange.
    """
    rows: list[tuple[int, int, int, bytes | None, bytes | None]] = []
    for at in frames.starts:
        try:
            header = read_header(frames.chunk, at)
        except RecordsError as error:
            raise complain(task.start_offset, frames.position + at, str(error)) from None
        if header.last_offset < task.start_offset or header.base_offset >= task.end_offset:
            continue
        if not verify_crc(frames.chunk, at, header):
            why = "the checksum of the message does not match its bytes"
            raise complain(header.base_offset, frames.position + at, why)
        kind = NO_TIMESTAMP_TYPE if header.magic == 0 else int(header.timestamp_type)
        try:
            rows += [
                (record.offset, record.timestamp, kind, record.key, record.value)
                for record in iter_records(frames.chunk, at)
                if _is_wanted(record.offset, record.timestamp, task)
            ]
        except RecordsError as error:
            raise complain(header.base_offset, frames.position + at, str(error)) from None
    schema = schema_of(columns)
    offsets, times, kinds, keys, values = list(zip(*rows, strict=True)) or [()] * 5
    arrays: dict[str, Any] = {
        "key": lambda: pa.array(keys, pa.binary()),
        "value": lambda: pa.array(values, pa.binary()),
        "topic": lambda: repeated(task.topic, len(rows)),
        "partition": lambda: pa.array([task.partition] * len(rows), pa.int32()),
        "offset": lambda: pa.array(offsets, pa.int64()),
        "timestamp": lambda: dated(task, np.array(offsets), np.array(times, np.int64)),
        "timestampType": lambda: pa.array(kinds, pa.int32()),
        "headers": lambda: pa.nulls(len(rows), schema.field("headers").type),
        "timestampMs": lambda: pa.array(times, pa.int64()),
    }
    return pa.RecordBatch.from_arrays([arrays[name]() for name in schema.names], schema=schema)


def _is_wanted(offset: int, timestamp: int, task: ScanTask) -> bool:
    since, before = task.start_timestamp, task.end_timestamp
    return (
        task.start_offset <= offset < task.end_offset
        and (since is None or timestamp >= since)
        and (before is None or timestamp < before)
    )
