"""The last batch of each producer of a partition, which a cleaning must keep (S-CMP-7).

The next start learns from a producer's last batch which sequence comes next, so compaction keeps
its header even when all its records are removed. A cleaning of some segments needs only the
producers whose last data lies in them, and those without any data, whose last marker it keeps.

    image = log.producers.image()                   on the loop, in microseconds
    last_records_in(image, first, end)              anywhere

A partition may know half a million producers. For many of them the result is three columns and not
a dict of tuples: building and pickling that would take half a second under the interpreter lock.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, Final

from storage.producers.entry import NO_RECORD_OFFSET
from storage.producers.image import ProducerImage
from storage.producers.snapshot import ENTRY_SIZE

LastRecord = tuple[int, int]
"""(producer epoch, last offset of the last data batch in it; -1: only a marker was appended)."""

_LAST: Final = Struct(">qh4xq24x")
"""Producer id, epoch and last offset of a row."""


def last_records_in(image: ProducerImage, first: int, end: int) -> Mapping[int, LastRecord]:
    """Last records by producer id, of producers with last data in [first, end) or no data."""
    if image.is_large:
        return _columns_of(image, first, end)
    return {
        producer_id: (epoch, offset)
        for rows in image.pieces
        for producer_id, epoch, offset in _LAST.iter_unpack(rows)
        if first <= offset < end or offset == NO_RECORD_OFFSET
    }


def _columns_of(image: ProducerImage, first: int, end: int) -> "LastRecords":
    import numpy  # here, as only large images need it

    row: Any = numpy.dtype(
        {
            "names": ["id", "epoch", "offset"],
            "formats": [">i8", ">i2", ">i8"],
            "offsets": [0, 8, 14],
            "itemsize": ENTRY_SIZE,
        }
    )
    rows = numpy.frombuffer(b"".join(image.pieces), dtype=row)
    offsets = rows["offset"]
    rows = rows[((offsets >= first) & (offsets < end)) | (offsets == NO_RECORD_OFFSET)]
    ids = rows["id"].astype(numpy.int64)
    order = numpy.argsort(ids)
    return LastRecords(
        ids[order],
        rows["epoch"].astype(numpy.int16)[order],
        rows["offset"].astype(numpy.int64)[order],
    )


class LastRecords(Mapping[int, LastRecord]):
    """Last records by producer id, as sorted columns, which pickle as fast as their bytes copy."""

    __slots__ = ("_epochs", "_ids", "_offsets")

    def __init__(self, ids: Any, epochs: Any, offsets: Any) -> None:
        self._ids = ids
        self._epochs = epochs
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.tolist())

    def __getitem__(self, producer_id: int) -> LastRecord:
        at = int(self._ids.searchsorted(producer_id))
        if at == len(self._ids) or self._ids[at] != producer_id:
            raise KeyError(producer_id)
        return int(self._epochs[at]), int(self._offsets[at])
