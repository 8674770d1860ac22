"""From offsets and times to positions in one segment, by indexes that are checked against the log.

The indexes of a live segment end some kilobytes before the log does; those of a copy may be cut,
older than the log, or absent. So an entry is used only if the log agrees at the position that it
names; otherwise the segment is read from its start. An unknown time is None, and leaves out no
records.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from protocol.records.batch import BATCH_OVERHEAD, MAGIC_OFFSET, read_header
from protocol.records.errors import CorruptBatch, RecordsError
from protocol.records.search import first_at_or_after
from protocol.types import TopicPartition
from storage.errors import CorruptIndex
from storage.filesystem import File, FileSystem
from storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from storage.index.time_index import LOOKED_AT
from storage.log.position import NO_ENTRY, Astray, BatchPosition, batch_heads, find_batch
from storage.reader.scan.errors import CorruptLog
from storage.reader.scan.segments import SegmentPlace
from storage.reader.segment import SegmentView

Ints = npt.NDArray[np.int64]

_MISSING: Final = np.empty(0, np.int64)
MOST: Final = 2**63 - 1
"""The greatest timestamp, or offset."""


class SegmentSeeker:
    """One segment with its open record file. Indexes are read at their first use."""

    def __init__(
        self, where: TopicPartition, place: SegmentPlace, view: SegmentView, file: File
    ) -> None:
        self._where = where
        self.place = place
        self._view = view
        self.file = file
        """The record file, closed only if the seeker is used as a context manager."""
        self.size = file.size()
        """Bytes of the record file when it was opened."""
        self._offset_entries: tuple[Ints, Ints] | None = None
        self._time_entries: tuple[Ints, Ints] | None = None
        self._is_last_time_newest: bool | None = None

    @classmethod
    def opened(
        cls, fs: FileSystem, where: TopicPartition, directory: str, place: SegmentPlace
    ) -> "SegmentSeeker":
        """Open the record file, which `with` closes. Raises OSError."""
        view = place.view(fs, directory)
        return cls(where, place, view, fs.open(view.path, writable=False))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    # Offsets.

    def find(self, offset: int) -> BatchPosition | None:
        """The first batch that ends at `offset` or above; None when there is none.

        Raises CorruptLog, OSError.
        """
        offsets, positions = self._offsets()
        slot = int(np.searchsorted(offsets, offset, side="right")) - 1
        if slot >= 0:
            entry, start = int(offsets[slot]), int(positions[slot])
            try:
                return find_batch(self.file, offset, start, self.size, entry=entry)
            except (Astray, CorruptBatch):
                pass  # the index is wrong or the log damaged; reading from the start tells which
        try:
            return find_batch(self.file, offset, 0, self.size, entry=NO_ENTRY)
        except CorruptBatch as error:
            raise self._corrupt(offset, 0, error) from None

    def end_of(self, offset: int) -> int:
        """Return a position after which nothing below `offset` lies; if unknown, the file's end."""
        try:
            found = self.find(offset)
        except CorruptLog:
            return self.size  # a reader reports the damage if it lies within its range
        return self.size if found is None else found.position + found.size

    def last_indexed(self) -> int:
        """Return the position of the last index entry that the log agrees with; 0 if none."""
        offsets, positions = self._offsets()
        for slot in range(len(offsets) - 1, max(len(offsets) - 4, -1), -1):
            if self._cut_at(int(offsets[slot]), int(positions[slot])) is not None:
                return int(positions[slot])
        return 0

    def cuts(self, start: int, end: int, distance: int) -> Iterator[tuple[int, int]]:
        """Yield (offset, position) of batches in (start, end), about `distance` bytes apart."""
        if distance <= 0 or end - start < 2 * distance:
            return
        offsets, positions = self._offsets()
        at = start + distance
        while end - at >= distance // 2:
            slot = int(np.searchsorted(positions, at))
            if slot == len(positions):
                return
            entry, position = int(offsets[slot]), int(positions[slot])
            if end - position < distance // 2:
                return
            base = self._cut_at(entry, position)
            if base is not None:
                yield base, position
            at = position + distance

    def _cut_at(self, entry: int, position: int) -> int | None:
        """Return the base offset of an index entry's batch; None if the log contradicts it."""
        head = self.file.pread(BATCH_OVERHEAD, position)
        if len(head) < BATCH_OVERHEAD or head[MAGIC_OFFSET] != 2:
            return None
        try:
            header = read_header(head)
        except RecordsError:
            return None
        fits = header.last_offset == entry and position + header.size <= self.size
        return header.base_offset if fits and self.place.base_offset <= entry else None

    def _offsets(self) -> tuple[Ints, Ints]:
        if self._offset_entries is None:
            try:
                columns = self._view.offset_index_columns()
            except (CorruptIndex, OSError):
                columns = {"offset": _MISSING, "position": _MISSING}
            offsets, positions = columns["offset"], columns["position"].astype(np.int64)
            if (np.diff(offsets) <= 0).any() or (np.diff(positions) <= 0).any():
                offsets = positions = _MISSING
            self._offset_entries = offsets, positions
        return self._offset_entries

    # Times.

    def newest_timestamp(self) -> int | None:
        """Return the newest timestamp (ms) of a segment that is not the last; None if unknown.

        Raises OSError.
        """
        timestamps, offsets = self._times()
        if self.place.until is None or not len(timestamps) or self._is_padded:
            return None
        if self._is_last_time_newest is None:
            self._is_last_time_newest = self._is_newest(int(timestamps[-1]), int(offsets[-1]))
        return int(timestamps[-1]) if self._is_last_time_newest else None

    def _is_newest(self, timestamp: int, offset: int) -> bool:
        """Whether the log agrees that its last time index entry names the newest record.

        A time index that was cut, or is older than the log, lacks entries: then a batch after the
        last one is newer, and mostly the next. So look at `LOOKED_AT` bytes after it.
        """
        try:
            found = self.find(offset)
            if found is None:
                return False
            heads = batch_heads(self.file, found.position, self.size)
            if next(heads).max_timestamp != timestamp:
                return False
            near = takewhile(lambda head: head.position - found.position < LOOKED_AT, heads)
            return all(head.max_timestamp <= timestamp for head in near)
        except (CorruptLog, RecordsError, StopIteration):
            return False

    def first_after(self, timestamp: int) -> int:
        """Return an offset below which all records of the segment are dated before `timestamp`."""
        timestamps, offsets = self._times()
        slot = int(np.searchsorted(timestamps, timestamp, side="left")) - 1
        return int(offsets[slot]) + 1 if slot >= 0 else self.place.base_offset

    def reached(self, timestamp: int, now: int = MOST) -> int | None:
        """Return an offset below which a record is dated from `timestamp` to `now`.

        None if unknown.
        """
        timestamps, offsets = self._times()
        slot = int(np.searchsorted(timestamps, min(timestamp, MOST), side="left"))
        there = slot < len(timestamps) and timestamp <= timestamps[slot] <= now
        return int(offsets[slot]) + 1 if there else None

    def newest_seen(self, now: int = MOST) -> int | None:
        """Return the last timestamp in the time index that is not after `now`; None if none is."""
        return self.newest_below(MOST, now)

    def newest_up_to(self, offset: int) -> int | None:
        """Return a time after which no record up to `offset` is dated; None if unknown."""
        timestamps, offsets = self._times()
        slot = int(np.searchsorted(offsets, offset, side="left"))
        return int(timestamps[slot]) if slot < len(offsets) else self.newest_timestamp()

    def newest_below(self, offset: int, now: int = MOST) -> int | None:
        """Return the last indexed timestamp of a record below `offset`, and not after `now`.

        None if there is none.
        """
        timestamps, offsets = self._times()
        below = np.searchsorted(offsets, offset, side="left")
        slot = int(min(below, np.searchsorted(timestamps, now, side="right"))) - 1
        return int(timestamps[slot]) if slot >= 0 else None

    def offset_of(self, timestamp: int, start_offset: int) -> int | None:
        """Return the offset of the first record from `start_offset` on dated `timestamp` or later.

        Raises CorruptLog, OSError.
        """
        newest = self.newest_timestamp()
        if newest is not None and newest < timestamp:
            return None
        found = self.find(max(start_offset, self.first_after(timestamp)))
        if found is None:
            return None
        position = found.position
        try:
            for head in batch_heads(self.file, position, self.size):
                position = head.position
                if head.max_timestamp < timestamp or head.last_offset < start_offset:
                    continue
                batch = self.file.pread(head.size, position)
                record = first_at_or_after(batch, 0, timestamp, start_offset)
                if record is not None:
                    return record[0]
        except RecordsError as error:
            raise self._corrupt(start_offset, position, error) from None
        return None

    @property
    def _is_padded(self) -> bool:
        """Whether zeros follow the entries, as in a segment that is being written."""
        return self._time_file_size != len(self._times()[0]) * TIME_ENTRY_SIZE

    def _times(self) -> tuple[Ints, Ints]:
        if self._time_entries is None:
            self._time_file_size = 0
            try:
                columns = self._view.time_index_columns()
                self._time_file_size = self._view.time_index_size
            except (CorruptIndex, OSError):
                columns = {"timestamp": _MISSING, "offset": _MISSING}
            timestamps, offsets = columns["timestamp"], columns["offset"]
            rises = not (np.diff(timestamps) <= 0).any() and not (np.diff(offsets) < 0).any()
            if not rises or not self._log_agrees(timestamps, offsets):
                timestamps = offsets = _MISSING
            self._time_entries = timestamps, offsets
        return self._time_entries

    def _log_agrees(self, timestamps: Ints, offsets: Ints) -> bool:
        """Whether the batch of the last entry has the timestamp of the entry."""
        if not len(timestamps):
            return True
        found = self.find(int(offsets[-1]))
        if found is None:
            return False
        for head in batch_heads(self.file, found.position, found.position + found.size):
            return head.max_timestamp == int(timestamps[-1])
        return False

    def _corrupt(self, offset: int, position: int, error: Exception) -> CorruptLog:
        return CorruptLog(self._where, offset, self._view.path, position, str(error))
