"""Opens many batches at once, their records as columns: small batches cost no more than large ones.

    for opened in open_records(frames, batches, wanted):
        ...     # the batches [opened.first, opened.after), and the records of those that are wanted

Batches come in their order, and so do records. Memory is bounded: the bytes inflated at once, and
the records in columns at once. A batch beyond these bounds comes alone and unopened
(`OpenedBatches.is_large`), and is read in chunks (`chunks_of`), any number of times.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from protocol.records.batch import BATCH_OVERHEAD, CODEC_MASK, read_header
from protocol.records.errors import RecordsError, UnsupportedCompression
from protocol.records.inflating import decompress
from protocol.records.opened import open_chunks
from protocol.records.scan_numpy import RecordColumns, read_columns
from protocol.records.starts import PADDING, starts_of_batches
from storage.cleaner.errors import UncleanableLog, UncleanableReason
from storage.cleaner.retained import Columns, Flags, Ints
from storage.reader.frames import Frames

_LARGE_PLAIN: Final = 2 << 20
_LARGE_INFLATED: Final = 2 << 20
"""The most bytes of one batch's records that are inflated together with other batches."""
_LARGE_COUNT: Final = 50_000
"""The most records of one batch that is opened together with others."""
_ENOUGH: Final = 1 << 22
"""Once so many bytes are inflated, no further batch is added to them."""
_ENOUGH_RECORDS: Final = 100_000
_NO_LIMIT: Final = 1 << 62


@dataclass(slots=True)
class Records:
    """Records of some batches: a payload, and arrays of one length."""

    payload: bytes
    starts: Ints
    ends: Ints
    owners: Ints
    """The index of each record's batch, counted from `OpenedBatches.first`."""
    columns: RecordColumns

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(slots=True)
class OpenedBatches:
    """The batches [first, after) of the frames."""

    first: int
    after: int
    records: Records
    is_large: bool = False
    """Whether this is one wanted batch that was not opened."""


def corrupt(error: RecordsError, where: str) -> UncleanableLog:
    """The UncleanableLog for a log with such a batch at `where`."""
    if isinstance(error, UnsupportedCompression):
        return UncleanableLog(UncleanableReason.UNSUPPORTED_CODEC, f"{where}: {error}")
    return UncleanableLog(UncleanableReason.CORRUPT_RECORDS, f"{where}: {error}")


_NONE: Final = np.empty(0, np.int64)


def _nothing() -> Records:
    columns = RecordColumns(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)
    return Records(b"", _NONE, _NONE, _NONE, columns)


def open_records(
    frames: Frames, batches: Columns, wanted: Flags, where: str = ""
) -> Iterator[OpenedBatches]:
    """All batches of `frames` (format 2), of which the `wanted` ones are opened.

    `where` names the place in messages.

    Raises UncleanableLog for records that do not fill their batch.
    """
    counts, sizes = batches["record_count"], batches["size"]
    codecs = batches["attributes"] & CODEC_MASK
    is_large = (sizes > _LARGE_PLAIN) | (counts > _LARGE_COUNT)
    some = wanted & (counts != 0)
    plain = np.flatnonzero(some & (codecs == 0) & ~is_large)
    group = _Group(frames, batches, plain, where)
    others = np.flatnonzero(some & ((codecs != 0) | is_large))
    columns = (column[others].tolist() for column in (counts, codecs, is_large))
    listed = zip(others.tolist(), *columns, strict=True)
    pending = next(listed, None)
    for cut in _cuts(plain, counts):
        while pending is not None and pending[0] < cut:
            index, count, codec, large = pending
            pending = next(listed, None)
            if not large and group.add(index, count, codec):
                if group.is_enough:
                    yield from group.take(index + 1)
                continue
            yield from group.take(index)
            yield OpenedBatches(index, index + 1, _nothing(), is_large=True)
            group.begin(index + 1)
        yield from group.take(cut)


def _cuts(plain: Ints, counts: Ints) -> list[int]:
    """Indexes of the batches before which a group ends, so that none has many more than
    `_ENOUGH_RECORDS` records of `plain` batches; the last one is the end."""
    whole = np.cumsum(counts[plain], dtype=np.int64) // _ENOUGH_RECORDS
    return [*plain[1:][np.diff(whole) > 0].tolist(), len(counts)]


class _Bounds(NamedTuple):
    """Batches in a payload; arrays of one length."""

    indexes: Ints
    """Index of each batch in the frames."""
    begins: Ints
    """The position at which the records of each batch begin in the payload."""
    ends: Ints
    counts: Ints


class _Group:
    """Batches that are opened together.

    Their payload is the chunk they lie in, or their inflated records; if a group has both kinds,
    the chunk follows the inflated records.
    """

    __slots__ = (
        "_data",
        "_first",
        "_frames",
        "_inflated",
        "_inflated_records",
        "_inflated_size",
        "_pieces",
        "_plain",
        "_sizes",
        "_where",
    )

    def __init__(self, frames: Frames, batches: Columns, plain: Ints, where: str) -> None:
        """`plain`: indexes of the batches whose records are read where they lie."""
        begins = np.array(frames.starts, np.int64)[plain] + BATCH_OVERHEAD
        sizes = batches["size"]
        self._plain = _Bounds(
            plain,
            begins,
            begins + (sizes[plain] - BATCH_OVERHEAD),
            batches["record_count"][plain].astype(np.int64),
        )
        self._frames = frames
        self._sizes = sizes
        self._data = b"".join((frames.chunk, PADDING)) if len(plain) else b""
        self._where = where
        self.begin(0)

    def begin(self, first: int) -> None:
        """Begin the next group with the batch `first`."""
        self._first = first
        self._pieces: list[bytes] = []
        self._inflated: list[tuple[int, int, int, int]] = []
        """Rows of `_Bounds` in the joined pieces."""
        self._inflated_size = 0
        self._inflated_records = 0

    @property
    def is_enough(self) -> bool:
        """Whether no further batch should be added."""
        return self._inflated_size > _ENOUGH or self._inflated_records > _ENOUGH_RECORDS

    def add(self, index: int, count: int, codec: int) -> bool:
        """Inflate a batch; False if it is too large to be opened here, or damaged."""
        at = self._frames.starts[index]
        packed = self._frames.chunk[at + BATCH_OVERHEAD : at + int(self._sizes[index])]
        try:
            payload = decompress(codec, packed, max_size=_LARGE_INFLATED)
        except RecordsError:
            return False
        begin = self._inflated_size
        self._pieces.append(payload)
        self._inflated_size += len(payload)
        self._inflated_records += count
        self._inflated.append((index, begin, self._inflated_size, count))
        return True

    def take(self, after: int) -> Iterator[OpenedBatches]:
        """Open the group's batches before `after`, if any, and begin the next group there."""
        first = self._first
        if after > first:
            yield OpenedBatches(first, after, self._records_before(after))
            self.begin(after)

    def _records_before(self, after: int) -> Records:
        first = self._first
        here = slice(*np.searchsorted(self._plain.indexes, (first, after)).tolist())
        bounds = _Bounds(*(column[here] for column in self._plain))
        if not len(bounds.indexes) and not self._inflated:
            return _nothing()
        payload = self._data
        if self._inflated:
            inflated = _Bounds(*np.array(self._inflated, np.int64).T)
            if len(bounds.indexes):
                payload = b"".join((*self._pieces, self._data))
                bounds = _merged(inflated, _moved(bounds, self._inflated_size))
            else:
                payload = b"".join((*self._pieces, PADDING))
                bounds = inflated
        try:
            starts, ends, owners = starts_of_batches(
                payload, bounds.begins, bounds.ends, bounds.counts
            )
            columns = read_columns(payload, starts, ends, is_padded=True)
        except RecordsError as error:
            raise corrupt(error, self._where) from None
        return Records(payload, starts, ends, bounds.indexes[owners] - first, columns)


def _moved(bounds: _Bounds, distance: int) -> _Bounds:
    return bounds._replace(begins=bounds.begins + distance, ends=bounds.ends + distance)


def _merged(one: _Bounds, other: _Bounds) -> _Bounds:
    """Join two of them, in the order of the batches."""
    joined = [np.concatenate(pair) for pair in zip(one, other, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return _Bounds(*(column[order] for column in joined))


def chunks_of(chunk: memoryview | bytes, at: int, where: str = "") -> Iterator[Records]:
    """The records of the batch at `at`, a bounded number at a time; their owner is 0.

    Raises UncleanableLog.
    """
    try:
        for opened in open_chunks(chunk, at, read_header(chunk, at), max_size=_NO_LIMIT):
            bounds = opened.starts
            for first in range(0, len(bounds) - 1, _ENOUGH_RECORDS):
                some = bounds[first : first + _ENOUGH_RECORDS + 1]
                starts, ends = some[:-1], some[1:]
                columns = read_columns(opened.payload, starts, ends)
                owners = np.zeros(len(starts), np.int64)
                yield Records(opened.payload, starts, ends, owners, columns)
    except RecordsError as error:
        raise corrupt(error, where) from None
