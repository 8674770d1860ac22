"""The records of many batches at once, as columns: small batches cost no more than large ones.

    for opened in open_records(frames, batches, wanted):
        ...     # the batches [opened.first, opened.after), and the records of those that are wanted

Batches come in their order, and so do records. Memory is bounded: what is inflated at once, and how
many records are in columns at once. A batch that is too much for that comes alone, unopened
(`Opened.is_large`), and is gone through in chunks (`chunks_of`), as often as one likes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocol.records.batch import BATCH_OVERHEAD, CODEC_MASK, read_header
from protocol.records.chain import distances, record_starts
from protocol.records.errors import RecordsError, UnsupportedCompression
from protocol.records.inflating import inflate_at_once
from protocol.records.opened import open_chunks
from protocol.records.scan_numpy import PAD, RecordColumns, read_columns
from storage.cleaner.errors import Uncleanable, UncleanableReason
from storage.cleaner.retained import Columns, Flags
from storage.reader.frames import Frames

Ints = npt.NDArray[np.int64]

_LARGE_PLAIN: Final = 2 << 20
_LARGE_INFLATED: Final = 2 << 20
"""Bytes of one batch's records."""
_LARGE_COUNT: Final = 50_000
"""Records of one batch."""
_FEW: Final = 32
"""Records of a batch among which no runs of one size are looked for."""
_ENOUGH: Final = 1 << 20
"""Bytes inflated, after which no further batch is opened beside them."""
_ENOUGH_RECORDS: Final = 100_000
_NO_LIMIT: Final = 1 << 62


@dataclass(slots=True)
class Records:
    """Records of some batches; arrays of one length but for the payload."""

    payload: bytes
    starts: Ints
    ends: Ints
    owners: Ints
    """The index of each record's batch, counted from `Opened.first`."""
    columns: RecordColumns

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(slots=True)
class Opened:
    """The batches [first, after) of the frames."""

    first: int
    after: int
    records: Records
    is_large: bool = False
    """One wanted batch whose records are not here."""


def corrupt(error: RecordsError, where: str) -> Uncleanable:
    """What a log is that holds such a batch."""
    if isinstance(error, UnsupportedCompression):
        return Uncleanable(UncleanableReason.UNSUPPORTED_CODEC, f"{where}: {error}")
    return Uncleanable(UncleanableReason.CORRUPT_RECORDS, f"{where}: {error}")


_NONE: Final = np.empty(0, np.int64)


def _nothing() -> Records:
    columns = RecordColumns(_NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE)
    return Records(b"", _NONE, _NONE, _NONE, columns)


def open_records(
    frames: Frames, batches: Columns, wanted: Flags, where: str = ""
) -> Iterator[Opened]:
    """All batches of `frames` (format 2), those that are `wanted` opened; `where` for messages.

    Raises Uncleanable for records that do not fill their batch.
    """
    counts, sizes = batches["record_count"], batches["size"]
    codecs = batches["attributes"] & CODEC_MASK
    # A plain batch of one record: the record is what follows the header. Whether its length agrees
    # shows when its fields are read.
    is_single = wanted & (counts == 1) & (codecs == 0) & (sizes <= _LARGE_PLAIN)
    is_large = (sizes > _LARGE_PLAIN) | (counts > _LARGE_COUNT)
    group = _Group(frames, batches, is_single, where)
    others = np.flatnonzero(wanted & ~is_single & (counts != 0))
    columns = (column[others].tolist() for column in (counts, sizes, codecs, is_large))
    for index, count, size, codec, large in zip(others.tolist(), *columns, strict=True):
        if not large and group.add(index, count, size, codec):
            if group.is_enough:
                yield from group.take(index + 1)
            continue
        yield from group.take(index)
        yield Opened(index, index + 1, _nothing(), is_large=True)
        group.begin(index + 1)
    yield from group.take(len(counts))


class _Group:
    """Batches that are opened together."""

    __slots__ = (
        "_added",
        "_base",
        "_batches",
        "_bounds",
        "_data",
        "_first",
        "_frames",
        "_is_single",
        "_pieces",
        "_table",
        "_where",
    )

    def __init__(self, frames: Frames, batches: Columns, is_single: Flags, where: str) -> None:
        self._frames = frames
        self._batches = batches
        self._is_single = is_single
        self._data = b"".join((frames.chunk, PAD))
        self._where = where
        self._table = distances()
        self.begin(0)

    def begin(self, first: int) -> None:
        """Another one, from that batch on."""
        self._first = first
        self._pieces = [self._data]
        self._base = len(self._data)
        self._bounds: list[int] = []
        """Where records begin in their batch, and where its last one ends; batch after batch."""
        self._added: list[tuple[int, int, int]] = []
        """(batch, records, where its records begin in the payload)."""

    @property
    def is_enough(self) -> bool:
        """No further batch should be opened beside these."""
        return self._base - len(self._data) > _ENOUGH or len(self._bounds) > _ENOUGH_RECORDS

    def add(self, index: int, count: int, size: int, codec: int) -> bool:
        """Open a batch; False if it is too large to be opened here, or makes no sense."""
        data, at = self._data, self._frames.starts[index] + BATCH_OVERHEAD
        end = at + size - BATCH_OVERHEAD
        if not codec and count <= _FEW and self._walk(at, end, count):
            self._added.append((index - self._first, count, 0))
            return True
        payload: bytes | None = data[at:end]
        if codec:
            payload = inflate_at_once(codec, payload or b"", _LARGE_INFLATED)
            if payload is None:
                return False
            at = self._base
            self._pieces.append(payload)
            self._base += len(payload)
        assert payload is not None
        if count == 1:
            self._bounds += (0, len(payload))
        else:
            try:
                self._bounds += record_starts(payload, count)
            except RecordsError as error:
                raise corrupt(error, self._where) from None
        self._added.append((index - self._first, count, at))
        return True

    def _walk(self, at: int, end: int, count: int) -> bool:
        """Go through a few records in the frames; False where the long way has to be gone."""
        data, table = self._data, self._table
        bounds = [at]
        try:
            for _ in range(count):
                at += table[data[at]][data[at + 1]]
                bounds.append(at)
        except IndexError:
            return False  # a length of three bytes or more, or nonsense
        if at != end:
            return False
        self._bounds += bounds
        return True

    def take(self, after: int) -> Iterator[Opened]:
        """What there is before that batch; then the next group begins there."""
        first = self._first
        if after > first:
            yield Opened(first, after, self._records_before(after))
            self.begin(after)

    def _records_before(self, after: int) -> Records:
        first = self._first
        singles = np.flatnonzero(self._is_single[first:after])
        if not self._added and not len(singles):
            return _nothing()
        at = np.array(self._frames.starts[first:after], np.int64)[singles]
        starts = at + BATCH_OVERHEAD
        ends = at + self._batches["size"][first:after][singles]
        owners = singles
        if self._added:
            indexes, counts, bases = np.array(self._added, np.int64).T
            bounds = np.array(self._bounds, np.int64) + np.repeat(bases, counts + 1)
            lasts = np.cumsum(counts + 1) - 1
            is_start = np.ones(len(bounds), np.bool_)
            is_start[lasts] = False
            is_end = np.ones(len(bounds), np.bool_)
            is_end[0] = False
            is_end[lasts[:-1] + 1] = False
            starts = np.concatenate([starts, bounds[is_start]])
            ends = np.concatenate([ends, bounds[is_end]])
            owners = np.concatenate([singles, np.repeat(indexes, counts)])
            if len(singles):
                order = np.argsort(owners, kind="stable")
                starts, ends, owners = starts[order], ends[order], owners[order]
        payload = self._data if len(self._pieces) == 1 else b"".join((*self._pieces, PAD))
        try:
            columns = read_columns(payload, starts, ends, is_padded=True)
        except RecordsError as error:
            raise corrupt(error, self._where) from None
        return Records(payload, starts, ends, owners, columns)


def chunks_of(chunk: memoryview | bytes, at: int, where: str = "") -> Iterator[Records]:
    """The records of the batch at `at`, however many, some at a time; their owner is 0.

    Raises Uncleanable.
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
