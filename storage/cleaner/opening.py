"""The records of many batches at once, as columns: small batches cost no more than large ones.

    for opened in open_records(frames, batches, wanted):
        ...     # the batches [opened.first, opened.after), and the records of those that are wanted

Batches come in their order, and so do records. Memory is bounded: what is inflated at once, and how
many records are in columns at once. A batch that is too much for that comes alone, unopened
(`Opened.is_large`), and is gone through in chunks (`chunks_of`), as often as one likes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protocol.records.batch import BATCH_OVERHEAD, CODEC_MASK, read_header
from protocol.records.chain import record_starts
from protocol.records.chain_numpy import starts_in_step
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
"""Records of a batch that is walked through together with others."""
_ENOUGH: Final = 1 << 22
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
    is_large = (sizes > _LARGE_PLAIN) | (counts > _LARGE_COUNT)
    data = b"".join((frames.chunk, PAD))
    found, is_found = _records_of_small_batches(
        data, frames, batches, wanted & (codecs == 0) & ~is_large
    )
    group = _Group(frames, data, found, where)
    others = np.flatnonzero(wanted & ~is_found & (counts != 0))
    columns = (column[others].tolist() for column in (counts, sizes, codecs, is_large))
    listed = zip(others.tolist(), *columns, strict=True)
    pending = next(listed, None)
    for cut in _cuts(np.where(is_found, counts, 0)):
        while pending is not None and pending[0] < cut:
            index, count, size, codec, large = pending
            pending = next(listed, None)
            if not large and group.add(index, count, size, codec):
                if group.is_enough:
                    yield from group.take(index + 1)
                continue
            yield from group.take(index)
            yield Opened(index, index + 1, _nothing(), is_large=True)
            group.begin(index + 1)
        yield from group.take(cut)


def _cuts(counts: Ints) -> list[int]:
    """Where to end a group, so that none has many more than `_ENOUGH_RECORDS` of these records."""
    whole = np.cumsum(counts, dtype=np.int64) // _ENOUGH_RECORDS
    return [*(np.flatnonzero(np.diff(whole)) + 1).tolist(), len(counts)]


class _Found(NamedTuple):
    """Records in the order of their batches; arrays of one length."""

    starts: Ints
    ends: Ints
    owners: Ints
    """The index of each record's batch in the frames."""


_NOTHING_FOUND: Final = _Found(_NONE, _NONE, _NONE)


def _records_of_small_batches(
    data: bytes, frames: Frames, batches: Columns, is_plain: Flags
) -> tuple[_Found, Flags]:
    """The records of the `is_plain` batches with few records, and which batches those are."""
    counts = batches["record_count"]
    starts = np.array(frames.starts, np.int64) + BATCH_OVERHEAD
    ends = starts + (batches["size"] - BATCH_OVERHEAD)
    # The one record of a batch is what follows the header. Whether its length agrees shows when
    # its fields are read.
    is_single = is_plain & (counts == 1)
    singles = np.flatnonzero(is_single)
    few = np.flatnonzero(is_plain & (counts > 1) & (counts <= _FEW))
    if not len(few):
        return _Found(starts[singles], ends[singles], singles), is_single
    walked = starts_in_step(
        np.frombuffer(data, np.uint8), starts[few], ends[few], counts[few].astype(np.int64)
    )
    few = few[walked.is_through]
    is_found = is_single
    is_found[few] = True
    found = _Found(walked.starts, walked.ends, np.repeat(few, counts[few]))
    return _merged(found, _Found(starts[singles], ends[singles], singles)), is_found


def _merged(one: _Found, other: _Found) -> _Found:
    """Records of different batches, in the order of the batches."""
    if not len(one.starts) or not len(other.starts):
        return one if len(one.starts) else other
    starts, ends, owners = (np.concatenate(pair) for pair in zip(one, other, strict=True))
    order = np.argsort(owners, kind="stable")
    return _Found(starts[order], ends[order], owners[order])


class _Group:
    """Batches that are opened together.

    Their payload is the chunk they lie in, or what was inflated of them; where a group has both
    kinds, the chunk follows what was inflated.
    """

    __slots__ = (
        "_bounds",
        "_data",
        "_first",
        "_found",
        "_frames",
        "_inflated",
        "_inflated_size",
        "_small",
        "_walked",
        "_where",
    )

    def __init__(self, frames: Frames, data: bytes, found: _Found, where: str) -> None:
        """`data` is the chunk of the frames, padded; `found` are records that are known already."""
        self._frames = frames
        self._data = data
        self._found = found
        self._where = where
        self.begin(0)

    def begin(self, first: int) -> None:
        """Another one, from that batch on."""
        self._first = first
        self._inflated: list[bytes] = []
        self._inflated_size = 0
        self._small: list[tuple[int, int, int, int]] = []
        """(batch, records, where they begin in what was inflated, where they end)."""
        self._walked: dict[bool, list[tuple[int, int, int]]] = {False: [], True: []}
        """By whether it was inflated: (batch, records, where its records begin)."""
        self._bounds: dict[bool, list[int]] = {False: [], True: []}
        """Where records begin in their batch, and where its last one ends; batch after batch."""

    @property
    def is_enough(self) -> bool:
        """No further batch should be opened beside these."""
        records = _FEW * len(self._small) + sum(map(len, self._bounds.values()))
        return self._inflated_size > _ENOUGH or records > _ENOUGH_RECORDS

    def add(self, index: int, count: int, size: int, codec: int) -> bool:
        """Open a batch; False if it is too large to be opened here, or makes no sense."""
        at = self._frames.starts[index] + BATCH_OVERHEAD
        end = at + size - BATCH_OVERHEAD
        payload: bytes | None
        if not codec:
            payload = self._data[at:end]
        else:
            payload = inflate_at_once(codec, self._frames.chunk[at:end], _LARGE_INFLATED)
            if payload is None:
                return False
            at = self._inflated_size
            self._inflated.append(payload)
            self._inflated_size += len(payload)
            if 1 < count <= _FEW:
                self._small.append((index, count, at, self._inflated_size))
                return True
        self._walk(index, count, payload, at, is_inflated=bool(codec))
        return True

    def _walk(self, index: int, count: int, payload: bytes, at: int, *, is_inflated: bool) -> None:
        try:
            bounds = [0, len(payload)] if count == 1 else record_starts(payload, count)
        except RecordsError as error:
            raise corrupt(error, self._where) from None
        self._walked[is_inflated].append((index, count, at))
        self._bounds[is_inflated] += bounds

    def take(self, after: int) -> Iterator[Opened]:
        """What there is before that batch; then the next group begins there."""
        first = self._first
        if after > first:
            yield Opened(first, after, self._records_before(after))
            self.begin(after)

    def _records_before(self, after: int) -> Records:
        first = self._first
        here = slice(*np.searchsorted(self._found.owners, (first, after)).tolist())
        plain = _Found(*(column[here] for column in self._found))
        plain = _merged(plain, self._walked_records(is_inflated=False))
        if not self._inflated:
            payload, found = self._data, plain
        elif not len(plain.starts):
            payload = b"".join((*self._inflated, PAD))
            found = self._inflated_records(payload)
        else:
            payload = b"".join((*self._inflated, self._data))
            moved = plain._replace(
                starts=plain.starts + self._inflated_size, ends=plain.ends + self._inflated_size
            )
            found = _merged(moved, self._inflated_records(payload))
        if not len(found.starts):
            return _nothing()
        try:
            columns = read_columns(payload, found.starts, found.ends, is_padded=True)
        except RecordsError as error:
            raise corrupt(error, self._where) from None
        return Records(payload, found.starts, found.ends, found.owners - first, columns)

    def _inflated_records(self, payload: bytes) -> _Found:
        """Of the batches that were inflated, which `payload` begins with."""
        found = _NOTHING_FOUND
        if self._small:
            indexes, counts, starts, ends = np.array(self._small, np.int64).T
            walked = starts_in_step(np.frombuffer(payload, np.uint8), starts, ends, counts)
            through = walked.is_through
            owners = np.repeat(indexes[through], counts[through])
            found = _Found(walked.starts, walked.ends, owners)
            for at in np.flatnonzero(~through).tolist():
                index, count, start, end = self._small[at]
                self._walk(index, count, payload[start:end], start, is_inflated=True)
        return _merged(found, self._walked_records(is_inflated=True))

    def _walked_records(self, *, is_inflated: bool) -> _Found:
        if not self._walked[is_inflated]:
            return _NOTHING_FOUND
        indexes, counts, bases = np.array(self._walked[is_inflated], np.int64).T
        bounds = np.array(self._bounds[is_inflated], np.int64) + np.repeat(bases, counts + 1)
        lasts = np.cumsum(counts + 1) - 1
        is_start = np.ones(len(bounds), np.bool_)
        is_start[lasts] = False
        is_end = np.ones(len(bounds), np.bool_)
        is_end[0] = False
        is_end[lasts[:-1] + 1] = False
        return _Found(bounds[is_start], bounds[is_end], np.repeat(indexes, counts))


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
