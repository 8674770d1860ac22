"""Checks whether the indexes of a segment agree with its record file.

There are two checks, as in Kafka's DumpLogSegments: that the file is consistent by itself (the
sanity check by which a broker decides at start whether to rebuild it), and that each entry agrees
with the log. The second reads the record file once, headers only, and compares columns.

Like Kafka's tool, it looks for an offset index entry's batch where the entry points to, and for a
time index entry's in the order of offsets; a batch's largest timestamp is its header's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.errors import CorruptIndex
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import TransactionIndex
from storage.reader.columns import Columns
from storage.reader.index_problem import IndexFlaw, IndexProblem


def sanity_of(
    offsets: OffsetIndex, times: TimeIndex, aborted: TransactionIndex, log_size: int | None
) -> list[IndexProblem]:
    """Contradictions within each index file (`log_size` None: the record file is missing)."""
    checks: tuple[tuple[str, Callable[[], None]], ...] = (
        (offsets.path, lambda: offsets.sanity_check(log_size=log_size, full=True)),
        (times.path, lambda: times.sanity_check(full=True)),
        (aborted.path, aborted.sanity_check),
    )
    problems = []
    for path, check in checks:
        try:
            check()
        except CorruptIndex as error:
            detail = str(error).removeprefix(f"{path}: ")
            problems.append(IndexProblem(flaw=IndexFlaw.CORRUPT, path=path, detail=detail))
    return problems


def offset_mismatches(path: str, index: Columns, batches: Columns) -> list[IndexProblem]:
    """Entries that do not point to the start of a batch that ends at their offset."""
    positions, lasts = batches["position"], batches["last_offset"]
    wanted, offsets = index["position"], index["offset"]
    at = np.searchsorted(positions, wanted)
    found = _at(lasts, at, default=-1)
    starts_there = _at(positions, at, default=-1) == wanted
    problems = []
    for slot in np.flatnonzero(~starts_there | (found != offsets)).tolist():
        offset, position = int(offsets[slot]), int(wanted[slot])
        there = int(found[slot]) if starts_there[slot] else -1
        detail = f"Index offset: {offset}, log offset: {there}"
        if there < 0:
            detail += f" (no batch starts at position {position})"
        problems.append(
            IndexProblem(
                flaw=IndexFlaw.OFFSET_MISMATCH,
                path=path,
                detail=detail,
                index_value=offset,
                log_value=there,
            )
        )
    return problems


def oversized(
    path: str, index: Columns, batches: Columns, max_batch_size: int
) -> list[IndexProblem]:
    """Entries that point to a batch of more than `max_batch_size` bytes."""
    at = np.searchsorted(batches["position"], index["position"])
    starts_there = _at(batches["position"], at, default=-1) == index["position"]
    sizes = np.where(starts_there, _at(batches["size"], at, default=0), 0)
    problems = []
    for slot in np.flatnonzero(sizes > max_batch_size).tolist():
        detail = (
            f"offset: {index['offset'][slot]} position: {index['position'][slot]}: the batch there,"
            f" of {sizes[slot]} bytes, is larger than --max-message-size"
        )
        problems.append(IndexProblem(flaw=IndexFlaw.CORRUPT, path=path, detail=detail))
    return problems


def time_mismatches(path: str, index: Columns, batches: Columns) -> list[IndexProblem]:
    """Entries at whose offset no batch ends, with a time not that batch's, or that do not rise."""
    lasts = batches["last_offset"]
    times, offsets = index["timestamp"], index["offset"]
    at = np.searchsorted(lasts, offsets)
    found = _at(lasts, at, default=-1)
    dated = _at(batches["max_timestamp"], at, default=-1)
    rises = np.concatenate([np.ones(min(1, len(times)), bool), np.diff(times) > 0])
    problems = []

    def add(flaw: IndexFlaw, value: int, there: int, detail: str) -> None:
        detail = detail.format(value, there)
        problems.append(
            IndexProblem(flaw=flaw, path=path, detail=detail, index_value=value, log_value=there)
        )

    for slot in np.flatnonzero((found != offsets) | (dated != times) | ~rises).tolist():
        offset, time = int(offsets[slot]), int(times[slot])
        if found[slot] != offset:
            detail = "Indexed offset: {}, found log offset: {}"
            add(IndexFlaw.OFFSET_NOT_FOUND, offset, int(found[slot]), detail)
            continue
        if dated[slot] != time:
            detail = "Index timestamp: {}, log timestamp: {}"
            add(IndexFlaw.TIMESTAMP_MISMATCH, time, int(dated[slot]), detail)
        if not rises[slot]:
            detail = "Index timestamp: {}, Previously indexed timestamp: {}"
            add(IndexFlaw.OUT_OF_ORDER, time, int(times[slot - 1]), detail)
    return problems


def _at(values: npt.NDArray[Any], slots: npt.NDArray[Any], *, default: int) -> npt.NDArray[Any]:
    """`values[slots]`, and `default` for slots behind the last one."""
    padded: npt.NDArray[Any] = np.append(values, default)
    found: npt.NDArray[Any] = padded[np.minimum(slots, len(values))]
    return found
