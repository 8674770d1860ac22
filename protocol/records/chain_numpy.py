"""Where the records of many small batches start, found for all of them at once.

Within a batch the walk is sequential (`protocol.records.chain`). Batches do not depend on each
other, so their walks go on in step: one numpy operation moves all of them to their next record. A
record lies in another cache line than the one before it, and a walk of one batch waits for memory
at each; here the processor waits for all batches at the same time.

Lengths of one or two bytes only (records up to 8 KB): a batch with a longer one is left to
`record_starts`, as is one whose records do not fill it.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protocol.records.chain import FAR, distances

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FAR_AWAY: Final = 1 << 40
"""A distance that leaves every payload, and is kept below an overflow for 2^20 steps."""

_tables: list[Ints] = []


class Walked(NamedTuple):
    """Records of those batches that were walked through, batch after batch."""

    starts: Ints
    ends: Ints
    is_through: Flags
    """Of each batch that was asked for: its records fill it, and are here."""


def starts_in_step(data: npt.NDArray[np.uint8], starts: Ints, ends: Ints, counts: Ints) -> Walked:
    """The bounds of the records of batches whose records lie at [start, end) in `data`.

    `counts` (each 1 or more) is what the batches' headers say. As many steps as the largest of
    them are made, so it should be small.
    """
    table = _tables[0] if _tables else _made_table()
    total = int(counts.sum())
    firsts = np.cumsum(counts) - counts
    # The batches with most records come first, so those that still walk are a slice.
    order = np.argsort(-counts, kind="stable")
    at = starts[order]
    rows = firsts[order]
    walking = len(counts) - np.searchsorted(np.sort(counts), np.arange(int(counts.max())), "right")
    found = np.empty(total, np.int64)
    found_ends = np.empty(total, np.int64)
    for step, active in enumerate(walking.tolist()):
        here, row = at[:active], rows[:active] + step
        found[row] = here
        heads = data.take(here, mode="clip").astype(np.int64)
        heads <<= 8
        heads |= data.take(here + 1, mode="clip")
        here += table.take(heads)
        found_ends[row] = here
    is_through = np.empty(len(counts), np.bool_)
    is_through[order] = at == ends[order]
    if not is_through.all():
        rows_through = np.repeat(is_through, counts)
        found, found_ends = found[rows_through], found_ends[rows_through]
    return Walked(found, found_ends, is_through)


def _made_table() -> Ints:
    table = np.array(distances(), np.int64).reshape(-1)
    table[table == FAR] = _FAR_AWAY
    _tables.append(table)
    return table
