"""Makes Arrow arrays of the records found, copying the bytes of keys and values only once.

Key and value bytes lie in the payload with gaps between them. An Arrow array over the payload (key,
gap, key, gap, …, made of offsets only) is given to `take`, which picks out the keys, or the values.
So Arrow copies each requested byte once, and no Python object is made for it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from protocol.records.batch import TIMESTAMP_TYPE_BIT
from protocol.records.record import read_headers
from storage.reader.arrow.chunks import LocatedRecords
from storage.reader.arrow.schema import HEADERS, LEAST_MS, MOST_MS, schema_of
from storage.reader.columns import Ints
from storage.reader.scan import ScanTask, TimestampOutOfRange


class Assembler:
    """Makes record batches of some columns for one task."""

    def __init__(self, task: ScanTask, columns: Sequence[str] | None) -> None:
        self._task = task
        self.schema = schema_of(columns)

    def batch(self, found: LocatedRecords) -> pa.RecordBatch:
        """Return the records in the task's range of offsets and times; may be empty.

        Raises TimestampOutOfRange.
        """
        times = _timestamps(found)
        rows = _rows(found.offsets, times, self._task)
        arrays = [_MAKERS[name](self._task, found, times, rows) for name in self.schema.names]
        if not arrays:  # no columns: only the number of rows is wanted
            return _counted(len(found.offsets) if rows is None else len(rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _counted(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _timestamps(found: LocatedRecords) -> Ints:
    """Return the timestamp of each record, ms, shape (records,); a sum wraps as in Java."""
    batches, owners = found.batches, found.owners
    times: Ints = batches["base_timestamp"][owners] + found.fields.timestamp_deltas
    by_log = (batches["attributes"] & TIMESTAMP_TYPE_BIT) != 0
    if by_log.any():
        times = np.where(by_log[owners], batches["max_timestamp"][owners], times)
    return times


def _rows(offsets: Ints, times: Ints, task: ScanTask) -> Ints | None:
    """Return the indexes of the records in the task's ranges; None: all."""
    if not len(offsets):
        return None
    keep = None
    if int(offsets[0]) < task.start_offset or int(offsets[-1]) >= task.end_offset:
        keep = (offsets >= task.start_offset) & (offsets < task.end_offset)
    if task.start_timestamp is not None:
        late = times >= task.start_timestamp
        keep = late if keep is None else keep & late
    if task.end_timestamp is not None:
        early = times < task.end_timestamp
        keep = early if keep is None else keep & early
    if keep is None or keep.all():
        return None
    return np.flatnonzero(keep)


def _of(values: npt.NDArray[Any], rows: Ints | None) -> npt.NDArray[Any]:
    return values if rows is None else values[rows]


def _binary(payload: bytes, starts: Ints, lengths: Ints, rows: Ints | None) -> pa.Array:
    """Return the binary column of slices of the payload; a length of -1 is a null."""
    starts, lengths = _of(starts, rows), _of(lengths, rows)
    count = len(starts)
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[:-1:2] = starts
    bounds[1::2] = starts + np.maximum(lengths, 0)
    bounds[-1] = bounds[-2] if count else 0
    spread = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(payload)]
    )
    nulls = lengths < 0
    places = np.arange(0, 2 * count, 2, dtype=np.int32)
    return spread.take(pa.array(places, mask=nulls if nulls.any() else None))


def _key(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    fields = found.fields
    return _binary(found.payload, fields.key_starts, fields.key_lengths, rows)


def _value(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    fields = found.fields
    return _binary(found.payload, fields.value_starts, fields.value_lengths, rows)


def _topic(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    return repeated(task.topic, len(_of(times, rows)))


def repeated(text: str, count: int) -> pa.Array:
    """Return a column with the same string `count` times."""
    content = text.encode()
    bounds = np.arange(0, (count + 1) * len(content), len(content), dtype=np.int32)
    if not content:
        bounds = np.zeros(count + 1, np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(bounds), pa.py_buffer(content * count)]
    )


def _partition(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    return pa.array(np.full(len(_of(times, rows)), task.partition, np.int32))


def _offset(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    return pa.array(_of(found.offsets, rows))


_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


def dated(task: ScanTask, offsets: Ints, times: Ints) -> pa.Array:
    """Convert milliseconds to timestamps of microseconds.

    Raises TimestampOutOfRange for the first record whose time does not fit.
    """
    if len(times) and (times.min() < LEAST_MS or times.max() > MOST_MS):
        first = int(np.flatnonzero((times < LEAST_MS) | (times > MOST_MS))[0])
        raise TimestampOutOfRange(task.topic_partition, int(offsets[first]), int(times[first]))
    return pa.Array.from_buffers(_TIMESTAMP, len(times), [None, pa.py_buffer(times * 1000)])


def _timestamp(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    return dated(task, _of(found.offsets, rows), _of(times, rows))


def _timestamp_ms(
    task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None
) -> pa.Array:
    return pa.array(_of(times, rows))


def _timestamp_type(
    task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None
) -> pa.Array:
    kinds = ((found.batches["attributes"] & TIMESTAMP_TYPE_BIT) != 0).astype(np.int32)
    return pa.array(_of(kinds[found.owners], rows))


def _headers(task: ScanTask, found: LocatedRecords, times: Ints, rows: Ints | None) -> pa.Array:
    fields = found.fields
    counts = _of(fields.header_counts, rows)
    some = np.flatnonzero(counts)
    if not len(some):
        return pa.nulls(len(counts), HEADERS)
    behind = fields.value_starts + np.maximum(fields.value_lengths, 0)
    places = _of(behind, rows)[some].tolist()
    return headers_array(len(counts), some, [read_headers(found.payload, at) for at in places])


def headers_array(
    count: int, some: Ints, headers: Sequence[Sequence[tuple[str, bytes | None]]]
) -> pa.Array:
    """Return a column of `count` rows: those at the indexes `some` have headers, others null."""
    sizes = np.zeros(count + 1, np.int64)
    sizes[some + 1] = [len(one) for one in headers]
    flat = [pair for one in headers for pair in one]
    content = pa.StructArray.from_arrays(
        [
            # Invalid UTF-8 in names is replaced as in Java.
            pa.array(
                [
                    name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                    for name, _ in flat
                ],
                pa.string(),
            ),
            pa.array([value for _, value in flat], pa.binary()),
        ],
        fields=list(HEADERS.value_type),
    )
    absent = np.ones(count, np.bool_)
    absent[some] = False
    offsets = pa.array(np.cumsum(sizes).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, content, type=HEADERS, mask=pa.array(absent))


_MAKERS: Final[dict[str, Callable[[ScanTask, LocatedRecords, Ints, "Ints | None"], pa.Array]]] = {
    "key": _key,
    "value": _value,
    "topic": _topic,
    "partition": _partition,
    "offset": _offset,
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
    "timestampMs": _timestamp_ms,
}
