"""Batches and records of a log as numpy columns: for Spark, pandas, statistics, and quick checks.

No Python object is made per record, and per batch only its position: headers are gathered by one
fancy index per chunk, and the records of all batches of a chunk are decoded together, field by
field (`protocol.records.scan_numpy`). So log files of small batches cost little more than those of
large ones.

    for chunk in iter_record_columns(segment.frames()):     # ~8 MB of log each
        chunk["offset"], chunk["key_length"], …

A few kilobytes of log may inflate to millions of records, so a chunk of log is cut where its
records or their bytes get many; a batch of very many is opened piece by piece.

Batches that cannot be decoded (an unknown codec, records that do not fill their batch) are left out
and listed (`RecordChunk.unreadable`), never raised, so that the rest can be used. Checksums are
checked by `checksums_hold` only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from protocol.records.batch import (
    ATTRIBUTES_OFFSET,
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
from protocol.records.opened import Chunk, open_chunks
from protocol.records.payload import payload_of
from protocol.records.record import iter_records, read_headers
from protocol.records.scan_numpy import RecordColumns, read_columns
from storage.reader.frames import Frames

Ints = npt.NDArray[np.int64]
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

_MAX_INT32: Final = 0x7FFFFFFF
MANY: Final = 1 << 18
"""Records that are decoded together; a batch that claims more is opened in pieces."""
INFLATED: Final = 64 << 20
"""Uncompressed bytes after which a chunk is cut; its last batch may exceed them."""
_PIECE: Final = 1 << 20
"""Bytes of a piece of a batch with more than `MANY` records."""


@dataclass(slots=True)
class RecordChunk:
    """The records of some megabytes of log."""

    columns: Columns
    """See RECORD_COLUMNS."""
    payload: bytes = b""
    """The bytes that hold the records, uncompressed; empty for formats 0 and 1."""
    key_starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (records,): where each key begins in `payload`."""
    value_starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (records,): where each value begins in `payload`."""
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    """(position in the record file, why) of batches whose records are left out."""

    def keys(self) -> list[bytes | None]:
        """The keys themselves; only for chunks with a payload."""
        return _slices(self.payload, self.key_starts, self.columns["key_length"])

    def values(self) -> list[bytes | None]:
        """The values themselves; only for chunks with a payload."""
        return _slices(self.payload, self.value_starts, self.columns["value_length"])

    def headers(self, most: int = _MAX_INT32) -> list[list[tuple[str, bytes | None]]]:
        """The headers themselves; only for chunks with a payload.

        Decoded one by one, for the records that have some; not for those that have more than
        `most`: a few kilobytes inflate to millions of them.
        """
        counts = self.columns["header_count"]
        found: list[list[tuple[str, bytes | None]]] = [[] for _ in range(len(counts))]
        some = np.flatnonzero((counts != 0) & (counts <= most))
        behind = self.value_starts[some] + np.maximum(self.columns["value_length"][some], 0)
        for row, at in zip(some.tolist(), behind.tolist(), strict=True):
            found[row] = read_headers(self.payload, at)
        return found


def _slices(payload: bytes, starts: Ints, lengths: npt.NDArray[Any]) -> list[bytes | None]:
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


def checksums_hold(frames: Frames, batches: Columns) -> npt.NDArray[np.bool_]:
    """Whether each batch's CRC is right, shape (batches,); `batches` are the chunk's columns."""
    chunk, starts = frames.chunk, frames.starts
    if frames.legacy:
        return np.array([verify_crc(chunk, at, read_header(chunk, at)) for at in starts], bool)
    ends = [*starts[1:], len(chunk)]
    found = [
        crc32c(chunk[at + ATTRIBUTES_OFFSET : end]) for at, end in zip(starts, ends, strict=True)
    ]
    held: npt.NDArray[np.bool_] = np.array(found, np.uint32) == batches["crc"]
    return held


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
        yield from record_columns(chunk)


def record_columns(frames: Frames, batches: Columns | None = None) -> Iterator[RecordChunk]:
    """The records of one chunk, as one unless there are very many; `batches` are its columns, if
    the caller has them already.
    """
    if frames.legacy:
        yield _legacy_records(frames)
        return
    if batches is None:
        batches = batch_columns(frames)
    before = records_before(batches["record_count"])
    first = 0
    while first < len(frames.starts):
        end = end_of_group(before, first)
        if end == first:
            yield from _in_pieces(frames, batches, first)
            first += 1
            continue
        laid = _lay_out(frames, batches, first, end)
        try:
            fields = read_columns(laid.payload, laid.starts, laid.ends)
        except RecordsError:
            # One of these records is bad: find its batch and leave that out.
            laid = _lay_out(frames, batches, first, end, careful=True)
            fields = read_columns(laid.payload, laid.starts, laid.ends)
        yield _assemble(batches, laid, fields)
        first = laid.end


def records_before(counts: npt.NDArray[Any]) -> Ints:
    """How many records batches of these counts have before each batch, and after the last."""
    before = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=before[1:])
    return before


def end_of_group(before: Ints, first: int) -> int:
    """The end of the batches from `first` on that have `MANY` records together at most; `first` if
    that one has more.
    """
    return int(np.searchsorted(before, before[first] + MANY, "right")) - 1


def check_records(chunk: memoryview, at: int) -> None:
    """Decode the batch of format 2 at `at`. Raises the records errors if it cannot be read."""
    for opened in opened_in_pieces(chunk, at):
        read_columns(opened.payload, opened.starts[:-1], opened.starts[1:])


def opened_in_pieces(chunk: memoryview, at: int) -> Iterator[Chunk]:
    """The batch of format 2 at `at`, piece by piece. Raises the records errors."""
    return open_chunks(chunk, at, read_header(chunk, at), chunk=_PIECE)


def _in_pieces(frames: Frames, batches: Columns, index: int) -> Iterator[RecordChunk]:
    at = frames.starts[index]
    try:
        check_records(frames.chunk, at)  # first, as no record of a bad batch is yielded
    except RecordsError as error:
        yield RecordChunk(empty(RECORD_COLUMNS), unreadable=[(frames.position + at, str(error))])
        return
    for opened in opened_in_pieces(frames.chunk, at):
        laid = _of_piece(opened, index)
        yield _assemble(batches, laid, read_columns(laid.payload, laid.starts, laid.ends))


def _of_piece(opened: Chunk, index: int) -> "_Laid":
    begins, ends = opened.starts[:-1], opened.starts[1:]
    return _Laid(opened.payload, begins, ends, np.full(len(begins), index), [], index + 1)


@dataclass(slots=True)
class _Laid:
    """The places of a chunk's records: in the chunk, or in the decompressed bytes behind it."""

    payload: bytes
    starts: Ints
    """The position at which each record begins in `payload`."""
    ends: Ints
    """The position at which each record ends in `payload`."""
    batches: Ints
    """The batch of each record."""
    unreadable: list[tuple[int, str]]
    end: int
    """The batch after the last one that was looked at."""


def _lay_out(
    frames: Frames, batches: Columns, first: int, end: int, *, careful: bool = False
) -> _Laid:
    """Lay out batches [first, end), or fewer if they inflate to very much."""
    data = bytes(frames.chunk)
    at = np.array(frames.starts, np.int64)
    counts = batches["record_count"]
    compressed = (batches["attributes"] & CODEC_MASK) != 0
    # A plain batch of one record: the record is what follows the header. Whether its length agrees
    # shows when its fields are read.
    single = (counts == 1) & ~compressed & (not careful)
    alone = first + np.flatnonzero(single[first:end])
    starts, ends = [at[alone] + BATCH_OVERHEAD], [at[alone] + batches["size"][alone]]
    owners = [alone]
    pieces = [data]
    base = len(data)
    unreadable: list[tuple[int, str]] = []
    for index in (first + np.flatnonzero((~single & (counts != 0))[first:end])).tolist():
        if base - len(data) > INFLATED:
            end = index
            kept = alone < end
            starts[0], ends[0], owners[0] = starts[0][kept], ends[0][kept], alone[kept]
            break
        start = frames.starts[index]
        header = read_header(data, start)
        try:
            payload = payload_of(data, start, header)
            bounds = np.array(record_starts(payload, header.record_count), np.int64)
            if careful:
                read_columns(payload, bounds[:-1], bounds[1:])
        except RecordsError as error:
            unreadable.append((frames.position + start, str(error)))
            continue
        if header.is_compressed:
            bounds += base
            pieces.append(payload)
            base += len(payload)
        else:
            bounds += start + BATCH_OVERHEAD
        starts.append(bounds[:-1])
        ends.append(bounds[1:])
        owners.append(np.full(header.record_count, index))
    rows = np.concatenate(owners)
    begin, stop = np.concatenate(starts), np.concatenate(ends)
    if len(alone) and len(owners) > 1:
        order = np.argsort(rows, kind="stable")
        rows, begin, stop = rows[order], begin[order], stop[order]
    return _Laid(b"".join(pieces), begin, stop, rows, unreadable, end)


def _assemble(batches: Columns, laid: _Laid, fields: RecordColumns) -> RecordChunk:
    rows = laid.batches

    def of_batch(name: str) -> npt.NDArray[Any]:
        return batches[name][rows]

    attributes = of_batch("attributes")
    timestamps = of_batch("base_timestamp") + fields.timestamp_deltas
    by_log = (attributes & TIMESTAMP_TYPE_BIT) != 0
    if by_log.any():
        timestamps = np.where(by_log, of_batch("max_timestamp"), timestamps)
    first_sequence = of_batch("base_sequence").astype(np.int64)
    sequences = np.where(
        first_sequence < 0, -1, (first_sequence + fields.offset_deltas) & _MAX_INT32
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
    return RecordChunk(
        columns, laid.payload, fields.key_starts, fields.value_starts, laid.unreadable
    )


def _legacy_records(frames: Frames) -> RecordChunk:
    """The records of messages of formats 0 and 1, decoded one by one: only old logs have them."""
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
