"""The aborted transactions of a log for a cleaning, which may be millions.

They are passed on as the bytes of the transaction indexes (`storage.index.transaction_index`), so
they cost the event loop a copy, and the message to the child their size.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from storage.index.transaction_index import ENTRY_SIZE, AbortedTxn

Table = npt.NDArray[Any]
"""Rows of `_ENTRY`."""

_ENTRY: Final = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
assert _ENTRY.itemsize == ENTRY_SIZE


def table_of(entries: bytes) -> Table:
    """The entries as rows, in their order."""
    return np.frombuffer(entries, _ENTRY)


def packed(transactions: Iterable[AbortedTxn]) -> bytes:
    """The transactions as entries of an index."""
    return b"".join(txn.pack() for txn in transactions)


def with_markers_in(entries: bytes, first: int, last: int) -> bytes:
    """The entries whose marker lies in [first, last], in the order of their markers."""
    table = table_of(entries)
    markers = table["last_offset"]
    table = table[(markers >= first) & (markers <= last)]
    return table[np.argsort(table["last_offset"], kind="stable")].tobytes()
