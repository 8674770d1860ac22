"""Tracks transactions during a pass over a log (`CleanedTransactionMetadata`).

Data comes before the marker that ends its transaction. So the aborted transactions are taken
beforehand from the transaction indexes; any other transaction was committed, because nothing at or
above the first unstable offset is cleaned.

S-CMP-7, as rules:

  1. Data of an aborted transaction is dropped at once. A batch of it whose header is kept still
     counts as data.
  2. A marker is kept while there is any data of its transaction, and gets no delete horizon. After
     a pass without such data its horizon is set, and it is dropped when that has passed
     (`retained`).
  3. An ABORT marker with data left has an entry in the new transaction index, with the original
     offsets. (Readers skip the data that the index names; without data there is nothing to skip.)
  4. A control batch without a record was emptied by an earlier cleaning: nothing depends on it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from protocol.records.batch import CONTROL_BIT
from protocol.records.control import ControlType, parse_control_type
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from storage.cleaner.aborted import table_of
from storage.cleaner.fates import BatchRule
from storage.cleaner.opening import corrupt
from storage.cleaner.retained import Codes, Columns, Flags, is_transactional
from storage.cleaner.retained import is_control as control_batches
from storage.reader.frames import Frames

ControlTypeOf = Callable[[int], ControlType | None]
"""Index of a control batch -> the type of its record, None where there is no record."""


def control_types(frames: Frames, where: str) -> ControlTypeOf:
    """A function that reads the control type of these batches; it raises UncleanableLog."""

    def type_of(index: int) -> ControlType | None:
        try:
            for record in iter_records(frames.chunk, frames.starts[index]):
                return parse_control_type(record.key)
        except RecordsError as error:
            raise corrupt(error, where) from None
        return None

    return type_of


class TransactionWalk:
    """The transactions during one pass from lower to higher offsets."""

    __slots__ = ("_aborted", "_committed", "_firsts", "_indexed", "_next", "_ongoing")

    def __init__(self, aborted: bytes, *, from_offset: int = 0) -> None:
        """`aborted`: index entries of at least all aborted transactions with data in the pass.

        Those with a marker below `from_offset` are left out.
        """
        table = table_of(aborted)
        table = table[table["last_offset"] >= from_offset]
        self._aborted = table[np.argsort(table["first_offset"], kind="stable")]
        self._firsts = self._aborted["first_offset"].astype(np.int64)
        self._next = 0
        self._ongoing: dict[int, tuple[int, bool]] = {}
        """Producer -> the row of its aborted transaction, and whether data of it was met."""
        self._committed: set[int] = set()
        """Producers with data, met in the pass, of a transaction that was committed."""
        self._indexed: list[int] = []
        """Rows of transactions that the new index has to name."""

    def take_indexed(self) -> bytes:
        """Entries for a new index: of transactions whose marker was met since the last call, and
        data before it."""
        rows, self._indexed = self._indexed, []
        return self._aborted[rows].tobytes()

    @property
    def leaves_open(self) -> bool:
        """Whether a transaction has begun whose marker was not met yet."""
        return bool(self._committed or self._ongoing)

    def rules(self, batches: Columns, type_of: ControlTypeOf) -> tuple[Codes, Flags]:
        """The `BatchRule` of each of the next batches, with all markers kept, and which of them are
        markers without data left (both to be passed to `judge_markers`).

        Only transactional batches and control batches are judged one by one.
        """
        rules = np.full(len(batches["base_offset"]), BatchRule.BY_KEY, np.uint8)
        is_free = np.zeros(len(rules), np.bool_)
        some = np.flatnonzero(is_transactional(batches) | control_batches(batches))
        ids, last, attributes = (
            batches[name][some].tolist() for name in ("producer_id", "last_offset", "attributes")
        )
        for index, producer_id, offset, bits in zip(
            some.tolist(), ids, last, attributes, strict=True
        ):
            if bits & CONTROL_BIT:
                kind = type_of(index)
                is_free[index] = self._is_free(kind, producer_id, offset)
                is_marker = kind in (None, ControlType.ABORT, ControlType.COMMIT)
                rules[index] = BatchRule.MARKER_STAYS if is_marker else BatchRule.CONTROL_STAYS
            elif self._is_aborted(producer_id, offset):
                rules[index] = BatchRule.ABORTED
        return rules, is_free

    def _begin_until(self, offset: int) -> None:
        """Add the aborted transactions that begin at or below `offset` to the ongoing ones."""
        while self._next < len(self._firsts) and self._firsts[self._next] <= offset:
            producer_id = int(self._aborted[self._next]["producer_id"])
            self._ongoing.setdefault(producer_id, (self._next, False))
            self._next += 1

    def _is_free(self, kind: ControlType | None, producer_id: int, offset: int) -> bool:
        """Whether no data depends on a control batch any more."""
        self._begin_until(offset)
        if kind is ControlType.ABORT:
            row, has_data = self._ongoing.pop(producer_id, (-1, False))
            if has_data:
                self._indexed.append(row)
                return False
            return True
        if kind is ControlType.COMMIT:
            has_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_data
        return kind is None

    def _is_aborted(self, producer_id: int, offset: int) -> bool:
        self._begin_until(offset)
        ongoing = self._ongoing.get(producer_id)
        if ongoing is None:
            self._committed.add(producer_id)
            return False
        self._ongoing[producer_id] = (ongoing[0], True)
        return True


def judge_markers(
    rules: Codes, is_free: Flags, horizon_passed: npt.NDArray[Any]
) -> tuple[Codes, Flags]:
    """`TransactionWalk.rules` with the markers that are dropped, and which batches get a horizon.

    `horizon_passed`: whether each batch has a delete horizon that has passed.
    """
    rules = rules.copy()
    rules[is_free & horizon_passed] = BatchRule.MARKER_GOES
    return rules, is_free
