"""Finds where records start in large pieces of many records: as `chain`, with arrays for lists.

Each record's length gives the start of the next, so the walk is sequential. Records of one size are
found in bulk (equal length bytes at equal distances, compared in C); the others cost a table lookup
each, which `Effort` counts.
"""

from typing import Final

import numpy as np

from protocol.records.chain import FAR, LEAST_BODY, MIN_RUN, distances, run_of
from protocol.records.effort import Effort
from protocol.records.errors import InvalidRecord
from protocol.records.scan_numpy import Ints
from protocol.records.varint import read_varint

_WALK: Final = 64
"""Records walked one by one before a run is looked for again."""
_FIRST_WINDOW: Final = 256
_LAST_WINDOW: Final = 1 << 17
"""The first and the greatest window of records that are compared at once; it doubles each time all
of them have one size."""


def walk(payload: bytes, most: int, effort: Effort) -> Ints:
    """The starts of the whole records in `payload`, at most `most`, and the end of the last one.

    A partial record may follow, or more than `most`. Raises InvalidRecord for a length that no
    record has, EffortSpent.
    """
    table = distances()
    end = len(payload)
    pieces: list[Ints] = []
    walked: list[int] = []
    found = at = 0
    window = _FIRST_WINDOW
    while found < most and at < end:
        ran, step = run_of(payload, at, min(window, most - found))
        if ran >= MIN_RUN:
            pieces += (np.array(walked, np.int64), np.arange(at, at + ran * step, step))
            walked = []
            found += ran
            at += ran * step
            window = min(2 * window, _LAST_WINDOW) if ran == window else _FIRST_WINDOW
            continue
        window = _FIRST_WINDOW
        effort.spend_steps(_WALK)
        before = len(walked)
        try:
            for _ in range(min(_WALK, most - found)):
                walked.append(at)
                at += table[payload[at]][payload[at + 1]]
        except IndexError:
            walked.pop()  # its length is not read yet
        if at >= FAR:
            following = _after_long(payload, at - FAR)
            at = walked.pop() if following is None else following
            found += len(walked) - before
            if following is None:
                break
        else:
            found += len(walked) - before
            if at == end - 1:
                break  # a record of one byte has only begun
    starts = np.concatenate([*pieces, np.array([*walked, at], np.int64)])
    return starts if at <= end else starts[:-1]  # the last one may reach beyond the end


def _after_long(payload: bytes, at: int) -> int | None:
    """The start after the record at `at`, whose length has three bytes or more, or is wrong; None
    when the length is not all there."""
    try:
        length, body = read_varint(payload, at)
    except IndexError:
        return None
    if length < LEAST_BODY:
        raise InvalidRecord(f"Invalid record size: {length} bytes hold no record")
    return body + length
