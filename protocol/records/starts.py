"""Finds where the records of many batches start, with numpy: no Python step per record.

`chain` finds the records of one batch one after the other. Logs of small batches have thousands of
them in a few megabytes, and a call per batch takes longer than its records. Here every batch has a
cursor, and all cursors move to their next record together. The few largest batches, which would
need many rounds, are walked by `chain`. Each record lies in another cache line: a single cursor
waits for memory at each one, many cursors wait at the same time.

Imported only where numpy is used anyway, as `scan_numpy` is.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocol.records.chain import FAR, LEAST_BODY, distances, record_starts
from protocol.records.errors import InvalidRecord

Ints: TypeAlias = npt.NDArray[np.int64]

PAD: Final = 12
"""Bytes that must follow the last batch: lengths are read without checking where it ends."""
PADDING: Final = bytes(PAD)

_ROUND: Final = 15.0
_WALK: Final = 8.0
_STEP: Final = 0.17
"""Measured microseconds of one round of cursors (`_ROUND`), and of a walk: `_WALK` at its start,
`_STEP` per record."""


_LOST: Final = 1 << 40
"""A position beyond every payload. Rounds add to it without overflow."""

_table: list[Ints] = []


class BadBatch(InvalidRecord):
    """The records of one batch do not fill it; `index` says which."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def starts_of_batches(
    payload: bytes, begins: Ints, ends: Ints, counts: Ints
) -> tuple[Ints, Ints, Ints]:
    """(start, end, index of the batch) of every record, in the order of batches.

    The plain records of batch i lie in [begins[i], ends[i]) of `payload`, which goes on for `PAD`
    bytes at least. Raises BadBatch when a batch does not hold as many records as counted.
    """
    firsts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=firsts[1:])
    wrong = np.flatnonzero((counts < 0) | (counts * (LEAST_BODY + 1) > ends - begins))
    if len(wrong):
        raise _not_filled(int(wrong[0]), counts)
    starts = np.empty(int(firsts[-1]), np.int64)
    stops = np.empty(int(firsts[-1]), np.int64)
    order = np.argsort(-counts, kind="stable")
    walked = _how_many_to_walk(counts[order])
    for index in order[:walked].tolist():
        begin, count = int(begins[index]), int(counts[index])
        try:
            found = record_starts(payload[begin : int(ends[index])], count)
        except InvalidRecord as error:
            raise BadBatch(index, str(error)) from None
        places = np.array(found, np.int64) + begin
        first = int(firsts[index])
        starts[first : first + count] = places[:-1]
        stops[first : first + count] = places[1:]
    rest = order[walked:]
    at = _moved_together(payload, begins[rest], counts[rest], firsts[rest], (starts, stops))
    short = np.flatnonzero(at != ends[rest])
    if len(short):
        raise _not_filled(int(rest[short[0]]), counts)
    return starts, stops, np.repeat(np.arange(len(counts)), counts)


def _moved_together(
    payload: bytes, at: Ints, counts: Ints, rows: Ints, found: tuple[Ints, Ints]
) -> Ints:
    """Move each cursor over `counts` records (descending), and write their bounds to `found` from
    `rows` on; returns the cursors. One that met an invalid length is at `_LOST` or beyond."""
    data = np.frombuffer(payload, np.uint8)
    starts, stops = found
    rounds = int(counts[0]) if len(counts) else 0
    # Those with most records come first, so the ones that go on are a slice.
    going = np.searchsorted(-counts, -np.arange(rounds), "left").tolist()
    for done, active in enumerate(going):
        now, places = at[:active], rows[:active] + done
        starts[places] = now
        now[:] = _behind(data, now)
        stops[places] = now
    return at


def _behind(data: npt.NDArray[np.uint8], at: Ints) -> Ints:
    """The positions behind the records at `at`."""
    heads = data.take(at, mode="clip").astype(np.int64)
    heads <<= 8
    heads |= data.take(at + 1, mode="clip")
    behind: Ints = at + _distances().take(heads)
    long = np.flatnonzero(behind >= _LOST)
    if len(long):
        behind[long] = _behind_long(data, at[long])
    return behind


def _behind_long(data: npt.NDArray[np.uint8], at: Ints) -> Ints:
    """`_behind` for lengths of three bytes or more, invalid ones, and lost cursors."""
    raw = np.zeros(len(at), np.int64)
    behind = at.copy()
    more = np.flatnonzero(at < len(data))
    for shift in (0, 7, 14, 21, 28):
        byte = data.take(behind[more], mode="clip")
        raw[more] |= (byte & 0x7F).astype(np.int64) << shift
        behind[more] += 1
        more = more[byte > 0x7F]
    makes_sense = ((raw & 1) == 0) & (raw >> 1 >= LEAST_BODY) & (at < _LOST)
    makes_sense[more] = False  # a sixth byte
    return np.where(makes_sense, behind + (raw >> 1), _LOST)


def _distances() -> Ints:
    """Bytes from a length to the next record, by the length's first two bytes, big end first."""
    if not _table:
        distances_ = np.array(distances(), np.int64).reshape(-1)
        distances_[distances_ == FAR] = _LOST
        _table.append(distances_)
    return _table[0]


def _how_many_to_walk(counts: Ints) -> int:
    """How many of the largest batches cost less when they are walked; `counts` is descending."""
    if not len(counts):
        return 0
    walks = np.zeros(len(counts) + 1)
    np.cumsum(_WALK + _STEP * counts, out=walks[1:])
    rounds = _ROUND * np.append(counts, 0)
    return int(np.argmin(walks + rounds))


def _not_filled(index: int, counts: Ints) -> BadBatch:
    return BadBatch(
        index,
        f"Incorrect declared batch size: {int(counts[index])} records do not fill the batch",
    )
