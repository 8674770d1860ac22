"""Batches and records of a log as numpy columns: for Spark, pandas, statistics, and quick checks.

No Python object is made per record, and for batches only their position is looked at one by one:
headers are gathered by one fancy index per chunk, the records of all batches of a chunk are laid
end to end and decoded field by field (`protocol.records.scan_numpy`). Log files of small batches
thus cost about as little as those of large ones.

    for chunk in iter_record_columns(segment.frames()):     # ~8 MB of log each
        chunk["offset"], chunk["key_length"], …

What cannot be decoded (a codec nobody knows, records that do not fill their batch) is left out and
counted (`RecordChunk.unreadable`), never raised: the rest is of use. Checksums are not looked at
unless asked for. Called by `storage.reader.segment` and `storage.reader.partition` only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    read_header,
    verify_crc,
)
from protocol.records.chain import record_starts
from protocol.records.errors import RecordsError
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.scan_numpy import RecordColumns, read_columns
from storage.reader.frames import Frames

Columns = dict[str, npt.NDArray[Any]]
"""Column name -> array; all arrays of one dict have one length."""

BATCH_COLUMNS: Final[dict[str, str]] = {
    "position": "i8",  # of its first byte in the record file
    "base_offset": "i8",
    "last_offset": "i8",
    "size": "i4",  # bytes, overhead included
    "partition_leader_epoch": "i4",  # -1 in formats 0 and 1
    "magic": "i1",
    "crc": "u4",
    "attributes": "i2",
    "base_timestamp": "i8",
    "max_timestamp": "i8",
    "producer_id": "i8",  # -1: none
    "producer_epoch": "i2",
    "base_sequence": "i4",
    "record_count": "i4",
}
"""Columns of batches and their dtypes (in native byte order), shape (batches,)."""

RECORD_COLUMNS: Final[dict[str, str]] = {
    "offset": "i8",
    "timestamp": "i8",  # ms; LogAppendTime batches: the batch's
    "key_length": "i4",  # -1: null
    "value_length": "i4",  # -1: null
    "header_count": "i4",
    "batch_position": "i8",  # of the batch that holds it, in the record file
    "partition_leader_epoch": "i4",
    "producer_id": "i8",
    "producer_epoch": "i2",
    "sequence": "i4",  # -1: none
    "is_transactional": "?",
    "is_control": "?",
}
"""Columns of records and their dtypes, shape (records,)."""

_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
assert _HEADER.itemsize == BATCH_OVERHEAD

_MAX_SEQUENCE: Final = 0x7FFFFFFF


@dataclass(slots=True)
class RecordChunk:
    """The records of some megabytes of log."""

    columns: Columns
    """See RECORD_COLUMNS."""
    payload: bytes = b""
    """The batches' records, uncompressed, end to end; empty for formats 0 and 1."""
    key_starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (records,): where each key begins in `payload`."""
    value_starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (records,): where each value begins in `payload`."""
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    """(position in the record file, why) of batches whose records are left out."""

    def keys(self) -> list[bytes | None]:
        """The keys themselves; only for chunks with a payload."""
        return _slices(self.payload, self.key_starts, self.columns["key_length"])

    def values(self) -> list[bytes | None]:
        """The values themselves; only for chunks with a payload."""
        return _slices(self.payload, self.value_starts, self.columns["value_length"])


def _slices(
    payload: bytes, starts: npt.NDArray[np.int64], lengths: npt.NDArray[Any]
) -> list[bytes | None]:
    pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [None if length < 0 else payload[at : at + length] for at, length in pairs]


def empty(names: dict[str, str]) -> Columns:
    """No rows of these columns."""
    return {name: np.empty(0, dtype) for name, dtype in names.items()}


def concatenate(parts: Sequence[Columns], names: dict[str, str]) -> Columns:
    """The rows of all parts, one after the other."""
    if not parts:
        return empty(names)
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def batch_columns(frames: Frames) -> Columns:
    """The batches of one chunk; see BATCH_COLUMNS."""
    if frames.legacy:
        return _legacy_batches(frames)
    table = _headers(frames)
    columns: Columns = {
        name: table[name].astype(dtype)
        for name, dtype in BATCH_COLUMNS.items()
        if name in _HEADER.names  # type: ignore[operator]
    }
    columns["position"] = np.array(frames.starts, np.int64) + frames.position
    columns["last_offset"] = columns["base_offset"] + table["last_offset_delta"]
    columns["size"] = (table["batch_length"] + 12).astype("i4")
    return {name: columns[name] for name in BATCH_COLUMNS}


def checksums_hold(frames: Frames) -> npt.NDArray[np.bool_]:
    """Whether each batch's CRC is right, shape (batches,)."""
    return np.array(
        [verify_crc(frames.chunk, at, read_header(frames.chunk, at)) for at in frames.starts], bool
    )


def _headers(frames: Frames) -> npt.NDArray[Any]:
    data = np.frombuffer(frames.chunk, np.uint8)
    starts = np.array(frames.starts, np.int64)
    rows = data[starts[:, None] + np.arange(BATCH_OVERHEAD)]
    return rows.view(_HEADER)[:, 0] if len(starts) else np.empty(0, _HEADER)


def _legacy_batches(frames: Frames) -> Columns:
    headers = [read_header(frames.chunk, at) for at in frames.starts]
    columns: Columns = {
        name: np.array([getattr(header, name) for header in headers], dtype)
        for name, dtype in BATCH_COLUMNS.items()
        if name != "position"
    }
    columns["position"] = np.array(frames.starts, np.int64) + frames.position
    return {name: columns[name] for name in BATCH_COLUMNS}


def iter_record_columns(frames: Iterable[Frames]) -> Iterator[RecordChunk]:
    """The records of each chunk of frames; see RECORD_COLUMNS."""
    for chunk in frames:
        yield record_columns(chunk)


def record_columns(frames: Frames) -> RecordChunk:
    """The records of one chunk."""
    if frames.legacy:
        return _legacy_records(frames)
    batches = batch_columns(frames)
    unreadable: list[tuple[int, str]] = []
    laid = _lay_out(frames, batches, unreadable)
    try:
        fields = read_columns(laid.payload, laid.starts)
    except RecordsError:
        # Somewhere in these megabytes is a bad record: find its batch, do without it.
        laid = _lay_out(frames, batches, unreadable, careful=True)
        fields = read_columns(laid.payload, laid.starts)
    return _assemble(batches, laid, fields, unreadable)


@dataclass(slots=True)
class _Laid:
    """Payloads of many batches, end to end."""

    payload: bytes
    starts: list[int]
    """Of each record, and the end of the last one."""
    batches: list[int]
    """Which batch each payload is from."""
    counts: list[int]
    """Records of each of those batches."""


def _lay_out(
    frames: Frames,
    batches: Columns,
    unreadable: list[tuple[int, str]],
    *,
    careful: bool = False,
) -> _Laid:
    pieces: list[bytes] = []
    starts: list[int] = []
    taken: list[int] = []
    counts: list[int] = []
    base = 0
    unreadable.clear()
    data = bytes(frames.chunk)
    sizes = batches["size"].tolist()
    record_counts = batches["record_count"].tolist()
    compressed = (batches["attributes"] & CODEC_MASK).tolist()
    for index, at in enumerate(frames.starts):
        count = record_counts[index]
        try:
            if compressed[index] or count < 0:
                payload = payload_of(data, at, read_header(data, at))
            else:
                payload = data[at + BATCH_OVERHEAD : at + sizes[index]]
            if count == 1:
                found = [0]  # whether it fills the batch shows when its fields are read
            elif count:
                found = record_starts(payload, count)
                found.pop()
            else:
                continue
            if careful:
                read_columns(payload, [*found, len(payload)])
        except RecordsError as error:
            unreadable.append((frames.position + at, str(error)))
            continue
        starts.extend([base + start for start in found] if base else found)
        pieces.append(payload)
        base += len(payload)
        taken.append(index)
        counts.append(count)
    starts.append(base)
    return _Laid(b"".join(pieces), starts, taken, counts)


def _assemble(
    batches: Columns, laid: _Laid, fields: RecordColumns, unreadable: list[tuple[int, str]]
) -> RecordChunk:
    rows = np.repeat(np.array(laid.batches, np.int64), laid.counts)

    def of_batch(name: str) -> npt.NDArray[Any]:
        return batches[name][rows]

    attributes = of_batch("attributes")
    timestamps = of_batch("base_timestamp") + fields.timestamp_deltas
    by_log = (attributes & TIMESTAMP_TYPE_BIT) != 0
    if by_log.any():
        timestamps = np.where(by_log, of_batch("max_timestamp"), timestamps)
    first_sequence = of_batch("base_sequence").astype(np.int64)
    sequences = np.where(
        first_sequence < 0, -1, (first_sequence + fields.offset_deltas) & _MAX_SEQUENCE
    )
    columns: Columns = {
        "offset": of_batch("base_offset") + fields.offset_deltas,
        "timestamp": timestamps,
        "key_length": fields.key_lengths.astype("i4"),
        "value_length": fields.value_lengths.astype("i4"),
        "header_count": fields.header_counts.astype("i4"),
        "batch_position": of_batch("position"),
        "partition_leader_epoch": of_batch("partition_leader_epoch"),
        "producer_id": of_batch("producer_id"),
        "producer_epoch": of_batch("producer_epoch"),
        "sequence": sequences.astype("i4"),
        "is_transactional": (attributes & TRANSACTIONAL_BIT) != 0,
        "is_control": (attributes & CONTROL_BIT) != 0,
    }
    return RecordChunk(columns, laid.payload, fields.key_starts, fields.value_starts, unreadable)


def _legacy_records(frames: Frames) -> RecordChunk:
    """Formats 0 and 1: one by one; they are old logs."""
    rows: list[tuple[int, int, int, int, int]] = []
    unreadable: list[tuple[int, str]] = []
    for at in frames.starts:
        try:
            found = [
                (
                    record.offset,
                    record.timestamp,
                    -1 if record.key is None else len(record.key),
                    -1 if record.value is None else len(record.value),
                    frames.position + at,
                )
                for record in iter_records(frames.chunk, at)
            ]
        except RecordsError as error:
            unreadable.append((frames.position + at, str(error)))
        else:
            rows += found
    known = ("offset", "timestamp", "key_length", "value_length", "batch_position")
    absent = {"header_count": 0, "is_transactional": False, "is_control": False}
    table = list(zip(*rows, strict=True)) or [()] * len(known)
    columns: Columns = {
        name: np.array(table[known.index(name)], dtype)
        if name in known
        else np.full(len(rows), absent.get(name, -1), dtype)
        for name, dtype in RECORD_COLUMNS.items()
    }
    return RecordChunk(columns, unreadable=unreadable)
