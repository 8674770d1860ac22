"""Where each producer of a partition wrote last: what a cleaning must not lose (S-CMP-7).

The last batch of a producer tells the next start which sequence comes next, so compaction keeps
its header even when all its records go. A cleaning of some segments needs to know of those
producers only whose last data lies in them, or who have no data at all: of these the marker stays.

    image = log.producers.image()                   on the loop: it costs nothing
    last_records_in(image, first, end)              anywhere

A partition may know half a million producers. Of many, the answer is three columns and not a table
of tuples: building and pickling that would hold the interpreter for half a second.
"""

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import Any, Final

from storage.producers.entry import NO_OFFSET
from storage.producers.image import ProducerImage
from storage.producers.snapshot import ENTRY_SIZE

LastRecord = tuple[int, int]
"""(producer epoch, offset of the last data in it; -1: only a marker was seen)."""

_LAST: Final = Struct(">qh4xq24x")
"""Of a row: producer id, epoch, last offset."""


def last_records_in(image: ProducerImage, first: int, end: int) -> Mapping[int, LastRecord]:
    """By producer id, those of producers whose last data lies in [first, end), or nowhere."""
    if image.is_large:
        return _columns_of(image, first, end)
    return {
        producer_id: (epoch, offset)
        for rows in image.pieces
        for producer_id, epoch, offset in _LAST.iter_unpack(rows)
        if first <= offset < end or offset == NO_OFFSET
    }


def _columns_of(image: ProducerImage, first: int, end: int) -> "LastRecords":
    import numpy  # where there are few producers, nobody needs it

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
    rows = rows[((offsets >= first) & (offsets < end)) | (offsets == NO_OFFSET)]
    ids = rows["id"].astype(numpy.int64)
    order = numpy.argsort(ids)
    return LastRecords(
        ids[order],
        rows["epoch"].astype(numpy.int16)[order],
        rows["offset"].astype(numpy.int64)[order],
    )


class LastRecords(Mapping[int, LastRecord]):
    """The same as columns, by ascending producer id. Pickles as quickly as its bytes."""

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
