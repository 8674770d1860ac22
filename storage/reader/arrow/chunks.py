"""Locates records in the bytes of a record file, without copying them, some megabytes at a time.

A chunk is whole batches as they were read. Their headers tell which a task wants (offsets, control,
aborted, times); only the wanted ones get their checksum verified and their records located. Plain
batches stay where they were read; if any wanted batch of a chunk is compressed, all wanted ones are
decompressed and joined.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from protocol.records.batch import (
    ATTRIBUTES_OFFSET,
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
)
from protocol.records.errors import InvalidRecord, RecordsError
from protocol.records.inflating import decompress
from protocol.records.scan_numpy import RecordColumns, read_columns
from protocol.records.starts import PAD, PADDING, BadBatch, starts_of_batches
from storage.reader.columns import (
    INFLATED,
    Columns,
    Ints,
    batch_columns,
    end_of_group,
    opened_in_pieces,
    records_before,
)
from storage.reader.frames import Frames
from storage.reader.scan import ScanTask

Complain = Callable[[int, int, str], Exception]
"""(base offset of a batch, its position in the file, message) -> the exception to raise."""

Wrong = Callable[[int, str], Exception]
"""(batch of the chunk, message) -> the exception to raise."""


@dataclass(slots=True)
class LocatedRecords:
    """Located records of wanted batches; arrays have shape (records,) unless noted."""

    payload: bytes
    fields: RecordColumns
    batches: Columns
    """Fields of the batches, shape (batches,)."""
    owners: Ints
    """The batch of each record."""
    offsets: Ints


def wanted_batches(batches: Columns, task: ScanTask) -> Ints:
    """Return the indexes of the batches that may hold records of the task."""
    attributes, bases = batches["attributes"], batches["base_offset"]
    wanted = (
        (bases < task.end_offset)
        & (batches["last_offset"] >= task.start_offset)
        & ((attributes & CONTROL_BIT) == 0)
        & (batches["record_count"] != 0)
    )
    if task.aborted:
        wanted &= ~_aborted(batches, task.aborted)
    if task.start_timestamp is not None:
        wanted &= batches["max_timestamp"] >= task.start_timestamp
    return np.flatnonzero(wanted)


def _aborted(batches: Columns, aborted: tuple[tuple[int, int, int], ...]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(batches["base_offset"]), np.bool_)
    rows = np.flatnonzero((batches["attributes"] & TRANSACTIONAL_BIT) != 0)
    if not len(rows):
        return found
    table = np.array(aborted, np.int64).reshape(-1, 3)
    bases, producers = batches["base_offset"][rows], batches["producer_id"][rows]
    # A producer's transactions do not overlap: only the last that began before a batch may hold it.
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    for producer in np.unique(producers).tolist():
        own = table[
            np.searchsorted(table[:, 0], producer) : np.searchsorted(
                table[:, 0], producer, side="right"
            )
        ]
        if not len(own):
            continue
        of_it = np.flatnonzero(producers == producer)
        slots = np.searchsorted(own[:, 1], bases[of_it], side="right") - 1
        ends = np.maximum.accumulate(own[:, 2])
        held = (slots >= 0) & (bases[of_it] <= ends[np.maximum(slots, 0)])
        found[rows[of_it[held]]] = True
    return found


def found_in(frames: Frames, task: ScanTask, complain: Complain) -> Iterator[LocatedRecords]:
    """Yield the records of the wanted batches of a chunk of format 2, in one or several pieces.

    Records outside the task's range are not left out here (`Assembler`). Raises what `complain`
    makes.
    """
    batches = batch_columns(frames)
    wanted = wanted_batches(batches, task)
    if not len(wanted):
        return
    data = _padded(frames)
    begins = np.array(frames.starts, np.int64)
    sizes = batches["size"].astype(np.int64)

    def wrong(index: int, why: str) -> Exception:
        return complain(int(batches["base_offset"][index]), int(batches["position"][index]), why)

    view = memoryview(data)
    stored = batches["crc"].tolist()
    for index in wanted.tolist():
        begin = frames.starts[index]
        if crc32c(view[begin + ATTRIBUTES_OFFSET : begin + int(sizes[index])]) != stored[index]:
            raise wrong(index, "the checksum of the batch does not match its bytes")
    before = records_before(batches["record_count"][wanted])
    first = 0
    while first < len(wanted):
        end = end_of_group(before, first)
        if end == first:
            end = first + 1
            index = int(wanted[first])
            try:
                for opened in opened_in_pieces(view, frames.starts[index]):
                    begin, stop = opened.starts[:-1], opened.starts[1:]
                    fields = read_columns(opened.payload, begin, stop)
                    rows = np.full(len(begin), index)
                    yield _found(opened.payload, fields, batches, rows)
            except RecordsError as error:
                raise wrong(index, str(error)) from None
        else:
            pieces = _pieces(data, begins, sizes, batches, wanted[first:end], wrong)
            yield from _located(pieces, batches, wrong)
        first = end


def _pieces(
    data: bytes, begins: Ints, sizes: Ints, batches: Columns, wanted: Ints, wrong: Wrong
) -> Iterator[tuple[bytes, Ints, Ints, Ints]]:
    """Yield (plain records, where those of each batch begin, end, the batches)."""
    if ((batches["attributes"][wanted] & CODEC_MASK) != 0).any():
        return _inflated(memoryview(data), begins, sizes, batches, wanted, wrong)
    ends = begins[wanted] + sizes[wanted]
    return iter([(data, begins[wanted] + BATCH_OVERHEAD, ends, wanted)])


def _located(
    pieces: Iterator[tuple[bytes, Ints, Ints, Ints]], batches: Columns, wrong: Wrong
) -> Iterator[LocatedRecords]:
    for payload, froms, tos, part in pieces:
        counts = batches["record_count"][part].astype(np.int64)
        try:
            starts, stops, owners = starts_of_batches(payload, froms, tos, counts)
        except BadBatch as error:
            raise wrong(int(part[error.index]), str(error)) from None
        try:
            fields = read_columns(payload, starts, stops, is_padded=True)
        except InvalidRecord as error:
            raise wrong(_culprit(payload, starts, stops, owners, part), str(error)) from None
        yield _found(payload, fields, batches, part[owners])


def _found(payload: bytes, fields: RecordColumns, batches: Columns, rows: Ints) -> LocatedRecords:
    offsets = batches["base_offset"][rows] + fields.offset_deltas
    return LocatedRecords(payload, fields, batches, rows, offsets)


def _padded(frames: Frames) -> bytes:
    """Return the chunk with at least `PAD` bytes after it, copied only if none were read there."""
    whole = frames.chunk.obj
    if len(frames.starts) > 1 and type(whole) is bytes:
        # A chunk of several batches is the start of what was read (`FrameWalk`).
        return whole if len(whole) - len(frames.chunk) >= PAD else whole + PADDING
    return bytes(frames.chunk) + PADDING


def _inflated(
    view: memoryview,
    begins: Ints,
    sizes: Ints,
    batches: Columns,
    wanted: Ints,
    wrong: Wrong,
) -> Iterator[tuple[bytes, Ints, Ints, Ints]]:
    pieces: list[Any] = []
    lengths: list[int] = []
    part: list[int] = []
    total = 0
    for index, codec in zip(
        wanted.tolist(), (batches["attributes"][wanted] & CODEC_MASK).tolist(), strict=True
    ):
        begin = int(begins[index])
        piece: Any = view[begin + BATCH_OVERHEAD : begin + int(sizes[index])]
        if codec:
            try:
                piece = decompress(codec, piece)
            except RecordsError as error:
                raise wrong(index, str(error)) from None
        pieces.append(piece)
        lengths.append(len(piece))
        part.append(index)
        total += len(piece)
        if total >= INFLATED:
            yield _joined(pieces, lengths, part)
            pieces, lengths, part, total = [], [], [], 0
    if part:
        yield _joined(pieces, lengths, part)


def _joined(
    pieces: list[Any], lengths: list[int], part: list[int]
) -> tuple[bytes, Ints, Ints, Ints]:
    ends = np.cumsum(lengths, dtype=np.int64)
    return (
        b"".join([*pieces, PADDING]),
        ends - np.array(lengths, np.int64),
        ends,
        np.array(part, np.int64),
    )


def _culprit(payload: bytes, starts: Ints, stops: Ints, owners: Ints, part: Ints) -> int:
    """Return the index of the batch with an unreadable record, by trying one after the other."""
    for place, index in enumerate(part.tolist()):
        rows = np.flatnonzero(owners == place)
        try:
            read_columns(payload, starts[rows], stops[rows], is_padded=True)
        except InvalidRecord:
            return int(index)
    return int(part[0])
