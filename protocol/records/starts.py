"""Where the records of many batches start, for numpy: no step per record of a small batch.

`chain` finds the records of one batch one after the other. Logs of small batches have thousands of
them in a few megabytes, and a call for each takes longer than its records. Here a cursor stands in
every batch, and all are moved to their next record together; large batches, of which few are left
after some rounds, are walked by `chain`.

Imported by those that have numpy anyway (`scan_numpy`'s rules).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protocol.records.chain import LEAST_BODY, record_starts
from protocol.records.errors import InvalidRecord

Ints = npt.NDArray[np.int64]

PAD: Final = 12
"""Bytes that must follow the last batch: a length is read without asking where its batch ends."""

_ROUND: Final = 30.0
_WALK: Final = 12.0
_STEP: Final = 0.17
"""Microseconds, measured: of one round of cursors, and of a walk: at its begin, and per record."""


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
    data = np.frombuffer(payload, np.uint8)
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
    at, left, slots, limits = begins[rest], counts[rest], firsts[rest].copy(), ends[rest]
    active = int(np.count_nonzero(left))
    done = 0
    while active:
        now, places = at[:active], slots[:active]
        behind = _behind(data, now)
        bad = np.flatnonzero((behind > limits[:active]) | (behind < now + LEAST_BODY))
        if len(bad):
            raise _not_filled(int(rest[bad[0]]), counts)
        starts[places] = now
        stops[places] = behind
        at[:active] = behind
        slots[:active] += 1
        done += 1
        active = int(np.searchsorted(-left, -done, side="left"))
    short = np.flatnonzero(at != limits)
    if len(short):
        raise _not_filled(int(rest[short[0]]), counts)
    return starts, stops, np.repeat(np.arange(len(counts)), counts)


def _behind(data: npt.NDArray[np.uint8], at: Ints) -> Ints:
    """The position behind the record at each; before it for a length that makes no sense."""
    byte = data[at]
    raw = (byte & 0x7F).astype(np.int64)
    behind = at + 1
    more = np.flatnonzero(byte > 0x7F)
    for shift in (7, 14, 21, 28):
        if not len(more):
            break
        byte = data[behind[more]]
        raw[more] |= (byte & 0x7F).astype(np.int64) << shift
        behind[more] += 1
        more = more[byte > 0x7F]
    raw[more] = 1  # a sixth byte: negative
    return np.where(raw & 1, at - 1, behind + (raw >> 1))


def _how_many_to_walk(counts: Ints) -> int:
    """Of the largest batches (`counts` falls): those that cost less when they are walked."""
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
