"""Finds where records start: the one sequential step of opening a batch.

Each record begins with the varint length of its body, so the start of one gives that of the next,
and no vector operation finds them all. Two things make the walk cheap:

* the first two bytes of a length index a table that gives the distance to the next record, or a
  distance so large that the next index access raises IndexError; so the loop has no branch;
* records of one size (fixed-size payloads) have equal length bytes at equal distances, which a
  strided slice and `lstrip` compare in C, a few hundred records at a time. One record's length
  determines where the next one's lies, so equal bytes at the stride prove the run, by induction.

A body holds at least six bytes: attributes, two deltas, two lengths, the header count.
"""

from typing import Final

from protocol.records.errors import InvalidRecord
from protocol.records.varint import read_varint

LEAST_BODY: Final = 6
FAR: Final = 1 << 60
"""Added to a position, it makes the next index access raise IndexError."""
_RUN_WINDOW: Final = 256
_WALK: Final = 32  # records walked one by one before a run is looked for again
MIN_RUN: Final = 8
"""The fewest records of one size that are worth taking together."""

_table: list[tuple[int, ...]] = []


def distances() -> list[tuple[int, ...]]:
    """`[first byte][second byte]` of a length: bytes from there to the next record, or FAR."""
    if not _table:
        _table[:] = _rows()  # all at once: another thread may be here, or read it
    return _table


def _rows() -> list[tuple[int, ...]]:
    rows: list[tuple[int, ...]] = []
    for first in range(128):
        body = first >> 1
        legal = not first & 1 and body >= LEAST_BODY
        rows.append(tuple([body + 1 if legal else FAR] * 256))
    for first in range(128, 256):
        low = first & 0x7F
        row = [
            FAR
            if first & 1 or (high << 7 | low) >> 1 < LEAST_BODY
            else ((high << 7 | low) >> 1) + 2
            for high in range(128)
        ]
        rows.append((*row, *[FAR] * 128))
    return rows


def record_starts(payload: bytes, count: int) -> list[int]:
    """The position of each record's length in `payload`, plus the end of the last one.

    Raises InvalidRecord unless exactly `count` records fill `payload`.
    """
    table = distances()
    end = len(payload)
    if count > end // (LEAST_BODY + 1):
        raise InvalidRecord(
            f"Incorrect declared batch size, {end} bytes cannot hold {count} records"
        )
    starts: list[int] = []
    add = starts.append
    at = 0
    while len(starts) < count:
        ran, step = run_of(payload, at, count - len(starts))
        starts.extend(range(at, at + ran * step, step))
        at += ran * step
        if ran >= MIN_RUN:
            continue
        try:
            for _ in range(min(_WALK, count - len(starts))):
                add(at)
                at += table[payload[at]][payload[at + 1]]
        except IndexError:
            starts.pop()
            if at < FAR:
                break  # the payload ended where one more record was due
        if at >= FAR:
            at = _long_step(payload, at - FAR)
    if at != end or len(starts) != count:
        raise InvalidRecord(
            f"Incorrect declared batch size: {count} records do not fill "
            f"the {end} bytes of the batch"
        )
    add(at)
    return starts


def run_of(payload: bytes, at: int, most: int) -> tuple[int, int]:
    """(how many records of equal size begin at `at`, their size); (0, 1) if the length there takes
    more than two bytes or is wrong."""
    head = payload[at : at + 2]
    if len(head) < 2:
        return 0, 1
    step = _table[head[0]][head[1]]
    if step == FAR:
        return 0, 1
    stop = at + step * min(_RUN_WINDOW, most)
    firsts = payload[at:stop:step]
    ran = len(firsts) - len(firsts.lstrip(head[:1]))
    if head[0] > 0x7F:
        seconds = payload[at + 1 : stop : step]
        ran = min(ran, len(seconds) - len(seconds.lstrip(head[1:])))
    return ran, step


def _long_step(payload: bytes, at: int) -> int:
    """The start after the record at `at`, whose length has three bytes or more, or is wrong."""
    try:
        length, body = read_varint(payload, at)
    except IndexError:
        raise InvalidRecord("The length of a record reaches beyond the batch") from None
    if length < LEAST_BODY or length > len(payload) - body:
        raise InvalidRecord(
            f"Invalid record size: expected {length} bytes in record payload, "
            f"but the batch has only {len(payload) - body} left"
        )
    return body + length
