"""Finds the transactions that are open at an offset, and those that were aborted.

A broker knows the open ones from its producer state. Here they come from the newest producer
snapshot at or below the offset and the batches after it. The aborted ones come from the transaction
indexes and from the batches after the snapshot, so that the index of the active segment may be
missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from protocol.records.control import ControlType, parse_control_type
from protocol.records.errors import RecordsError
from protocol.records.record import iter_records
from storage.errors import CorruptSnapshot
from storage.filesystem import FileSystem
from storage.reader.columns import batch_columns
from storage.reader.frames import FrameWalk
from storage.reader.partition import PartitionView
from storage.reader.scan.errors import CorruptLog
from storage.reader.scan.seek import SegmentSeeker
from storage.reader.scan.segments import SegmentPlace

Aborted = tuple[int, int, int]
"""(producer id, first offset, offset of the marker)"""


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a partition that a committed reader must know."""

    last_stable_offset: int
    """Every transaction that began below it has ended below the high watermark."""
    aborted: tuple[Aborted, ...]
    """In the order of the markers."""

    def touching(self, start_offset: int, end_offset: int) -> tuple[Aborted, ...]:
        """Return the aborted transactions with an offset in the range."""
        return tuple(one for one in self.aborted if one[1] < end_offset and one[2] >= start_offset)


class TransactionReader:
    """Reads the transactions of one partition."""

    def __init__(
        self, fs: FileSystem, view: PartitionView, segments: Sequence[SegmentPlace]
    ) -> None:
        self._fs = fs
        self._view = view
        self._segments = segments
        where = view.topic_partition
        assert where is not None
        self._where = where

    def read(self, start_offset: int, high_watermark: int) -> Transactions:
        """Return the transactions as of the high watermark, aborted ones from `start_offset` on.

        Raises CorruptLog, OSError.
        """
        begin, going = self._snapshot(high_watermark)
        aborted: set[Aborted] = set()
        for offset, producer_id, kind in self._events(begin, high_watermark):
            if kind is None:
                going.setdefault(producer_id, offset)
                continue
            first = going.pop(producer_id, None)
            if kind is ControlType.ABORT and first is not None:
                aborted.add((producer_id, first, offset))
        for segment in self._segments:
            if segment.until is not None and segment.until <= start_offset:
                continue
            for txn in segment.view(self._fs, self._view.directory).aborted():
                if txn.last_offset < high_watermark:
                    aborted.add((txn.producer_id, txn.first_offset, txn.last_offset))
        stable = min(going.values(), default=high_watermark)
        ordered = tuple(sorted(aborted, key=lambda one: (one[2], one[1])))
        return Transactions(min(stable, high_watermark), ordered)

    def _snapshot(self, limit: int) -> tuple[int, dict[int, int]]:
        """Return a snapshot's offset and the open transactions there: producer id, first offset."""
        for offset in reversed([one for one in self._view.snapshots() if one <= limit]):
            try:
                producers = self._view.producers(offset)
            except (CorruptSnapshot, OSError):
                continue
            return offset, {
                producer.producer_id: producer.current_txn_first_offset
                for producer in producers
                if producer.current_txn_first_offset >= 0
            }
        return (self._segments[0].base_offset if self._segments else 0), {}

    def _events(self, begin: int, end: int) -> Iterator[tuple[int, int, ControlType | None]]:
        """Yield (offset, producer id, kind of marker, or None for data) in [begin, end)."""
        for segment in self._segments:
            if segment.base_offset >= end or (segment.until or end) <= begin:
                continue
            yield from self._events_of(segment, begin, end)

    def _events_of(
        self, segment: SegmentPlace, begin: int, end: int
    ) -> Iterator[tuple[int, int, ControlType | None]]:
        view = segment.view(self._fs, self._view.directory)
        file = self._fs.open(view.path, writable=False)
        try:
            found = SegmentSeeker(self._where, segment, view, file).find(begin)
            if found is None:
                return
            for frames in FrameWalk(file, found.position, file.size()):
                if frames.legacy:
                    continue
                batches = batch_columns(frames)
                attributes, bases = batches["attributes"], batches["base_offset"]
                rows = np.flatnonzero(
                    ((attributes & TRANSACTIONAL_BIT) != 0) & (bases >= begin) & (bases < end)
                )
                for row in rows.tolist():
                    kind = None
                    if attributes[row] & CONTROL_BIT:
                        try:
                            record = next(iter_records(frames.chunk, frames.starts[row]))
                            kind = parse_control_type(record.key)
                        except (RecordsError, StopIteration) as error:
                            position = frames.position + frames.starts[row]
                            raise CorruptLog(
                                self._where, int(bases[row]), view.path, position, str(error)
                            ) from None
                    yield int(bases[row]), int(batches["producer_id"][row]), kind
                if len(bases) and bases[-1] >= end:
                    return
        finally:
            file.close()
