"""Offset and time index of one segment: appending, looking up, and how far they are believed.

Invariants
  1. Entries never lead beyond the segment's size. They can all be rebuilt from the record file, so
     they are not synced on append, and a sparser index is right as well.
  2. An entry is compared with the log where it leads, in the read that is made there anyway: a
     batch has to end at its offset, or have its timestamp. An index that does not agree raises
     IndexInDoubt. From then on neither index is used, until both are rebuilt (`install`).
  3. The index files are opened at first use, while the segment has its record file open.

Positions and sizes are bytes, `size` is that of the segment. Everything here raises OSError.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from protocol.records.batch import BatchHeader
from protocol.records.errors import CorruptBatch
from protocol.types import NO_TIMESTAMP
from storage.errors import (
    CorruptIndex,
    IndexInDoubt,
    IndexKind,
    InvalidIndexAppend,
    is_shortage,
)
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import LOOKED_AT, TimeIndex
from storage.log.index_scan import IndexScan, OpenTransactions
from storage.log.position import NO_ENTRY, Astray, BatchPosition, find_batch
from storage.log.results import RollReason
from storage.log.scan import HEADERS, Walk
from storage.log.segment_files import SegmentFiles

_LONG_WAY: Final = 512
"""A search that takes so many reads, ten milliseconds at most, means that the index has gaps."""

_MOST_REPAIRS: Final = 3
"""Repairs of one segment's indexes, after which contradictions mean that the log is damaged."""

UNKNOWN: Final = -2
"""`max_timestamp` before the time index was read."""


class SegmentIndexes:
    """The two indexes of one segment, and its greatest timestamp, which the time index ends with.

    Made when a segment needs them first. Times are milliseconds.
    """

    __slots__ = (
        "_bytes_since_entry",
        "_files",
        "_offset",
        "_repairs",
        "_suspect",
        "_time",
        "free",
        "max_timestamp",
        "offset_of_max_timestamp",
    )

    def __init__(self, files: SegmentFiles, *, is_empty: bool) -> None:
        """`is_empty`: the segment has no batches."""
        self._files = files
        self._offset: OffsetIndex | None = None
        self._time: TimeIndex | None = None
        self._bytes_since_entry = 0
        self.free = 0
        """How many entries both indexes have room for, so that appends need not ask `full`; 0: ask.
        """
        self.max_timestamp = NO_TIMESTAMP if is_empty else UNKNOWN
        """The greatest timestamp of a batch; -1 when no batch has one."""
        self.offset_of_max_timestamp = -1 if is_empty else files.base_offset
        """Last offset of the batch that has `max_timestamp`."""
        self._suspect: IndexInDoubt | None = None
        """Why the indexes are not used until they are rebuilt; None: they are used."""
        self._repairs = 0

    @property
    def offset(self) -> OffsetIndex:
        """The offset index. Raises CorruptIndex when the file contradicts itself."""
        if self._offset is None:
            files, home = self._files, self._files.home
            self._offset = OffsetIndex(
                home.fs, files.offset_index_path, files.base_offset, home.index_size
            )
        return self._offset

    @property
    def time(self) -> TimeIndex:
        """The time index. Raises CorruptIndex when the file contradicts itself."""
        if self._time is None:
            files, home = self._files, self._files.home
            self._time = TimeIndex(
                home.fs, files.time_index_path, files.base_offset, home.index_size
            )
        return self._time

    # Appending.

    def note(self, size: int, last_offset: int, max_timestamp: int, position: int) -> None:
        """Index a batch of `size` bytes that was written at `position` (S-IDX-1).

        Index entry: last offset of the batch, position of its start; only when more than
        `index.interval.bytes` were written since the last entry, so never for the first batch.
        """
        if self.max_timestamp == UNKNOWN:
            self._trust_max_timestamp(position)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        since = self._bytes_since_entry
        if since > self._files.home.index_interval:
            self._add_entries(last_offset, position)
            since = 0
        self._bytes_since_entry = since + size

    def _add_entries(self, last_offset: int, position: int) -> None:
        """Index a batch, unless the indexes wait for a rebuild, which reads the batch as well.

        Leave out an entry that does not fit. Mostly the log rolls first. But a follower's append of
        many batches may fill an index, segments of old logs (KAFKA-6264) hold offsets too far from
        their base until recovery splits them, and without a free descriptor an index cannot be
        opened: no reason to fail an append.
        """
        if self._suspect is not None or last_offset - self._files.base_offset > MAX_RELATIVE_OFFSET:
            return
        offsets = self._offset or self.offset
        times = self._time or self.time
        try:
            if self.free:
                self.free -= 1
                offsets.append(last_offset, position)
                times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
                return
            if not offsets.is_full:
                offsets.append(last_offset, position)
            if not times.is_full:
                times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        except (InvalidIndexAppend, CorruptIndex) as error:
            self._doubt(IndexKind.OFFSET, str(error))
        except OSError as failure:
            if not is_shortage(failure):
                raise

    def full(self) -> RollReason | None:
        """Why no entry may be added any more; None if both indexes have room, or are in doubt."""
        if self._suspect is not None:
            return None
        self.free = min(self.offset.free, self.time.free)
        if self.free:
            return None
        is_full = self.offset.is_full
        return RollReason.OFFSET_INDEX_FULL if is_full else RollReason.TIME_INDEX_FULL

    # Looking up.

    def find(self, offset: int, size: int) -> BatchPosition | None:
        """Find the batch that holds `offset`, or the next higher one (S-READ-2, S-READ-3).

        None when every batch ends below it. Raises CorruptBatch for damaged records, IndexInDoubt
        for a wrong index.
        """
        files = self._files
        if size <= files.home.index_interval:
            # Before the first possible entry there is nothing to look up.
            return find_batch(files.record_file, offset, 0, size)
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            entry, start = (self._offset or self.offset).lookup(offset)
            return find_batch(
                files.opened or files.record_file,
                offset,
                start,
                size,
                entry=entry if entry != files.base_offset or start else NO_ENTRY,
                most_reads=0 if self._repairs else _LONG_WAY,
            )
        except CorruptIndex as error:
            raise self._doubt(IndexKind.OFFSET, error.reason) from error
        except Astray as astray:
            raise self._doubt(IndexKind.OFFSET, str(astray)) from None

    def start_for(self, timestamp: int, start_offset: int, size: int) -> int:
        """A position at or before every batch that reaches both `timestamp` and `start_offset`.

        Raises IndexInDoubt, CorruptBatch.
        """
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            dated, indexed = self.time.lookup(timestamp)
        except CorruptIndex as error:
            raise self._doubt(IndexKind.TIME, error.reason) from error
        if dated >= 0 and indexed > start_offset:
            return self._position_of_time(dated, indexed, size)
        found = self.find(max(start_offset, self._files.base_offset), size)
        return size if found is None else found.position

    def bound_of(self, position: int, length: int, size: int) -> int | None:
        """An offset above all in the `length` bytes at `position`, from an index entry; else None.

        Raises IndexInDoubt.
        """
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            entry = self.offset.upper_bound(position, length)
        except CorruptIndex as error:
            raise self._doubt(IndexKind.OFFSET, error.reason) from error
        if entry is None:
            return None
        offset, at = entry
        try:
            found = find_batch(self._files.record_file, offset, at, size, entry=offset)
        except (Astray, CorruptBatch):
            found = None
        if found is None:
            raise self._doubt(IndexKind.OFFSET, f"says that a batch up to {offset} begins at {at}")
        return offset

    def _position_of_time(self, timestamp: int, offset: int, size: int) -> int:
        """Position of the batch that a time index entry names. Raises IndexInDoubt."""
        found = self.find(offset, size)
        if found is not None:
            for header in self._headers(found.position, found.position + found.size):
                if header.max_timestamp == timestamp:
                    return found.position
        raise self._doubt(IndexKind.TIME, f"says {timestamp} of offset {offset}")

    def _doubt(self, kind: IndexKind, reason: str) -> Exception:
        """Stop using both indexes until a repair; returns the exception to raise."""
        files = self._files
        path = files.offset_index_path if kind is IndexKind.OFFSET else files.time_index_path
        if self._repairs >= _MOST_REPAIRS:
            return CorruptBatch(f"{path}: {reason}, although it was rebuilt")
        self._suspect = IndexInDoubt(path, files.base_offset, kind, reason)
        return self._suspect.fresh()

    # The greatest timestamp.

    def load_max_timestamp(self, size: int) -> None:
        """Load it from the last entry of the time index, which is compared with the log first.

        Raises IndexInDoubt.
        """
        timestamp, offset = self._last_time_entry()
        position = 0 if timestamp < 0 else self._position_of_time(timestamp, offset, size)
        for header in self._headers(position, min(size, position + LOOKED_AT)):
            if header.max_timestamp > timestamp:
                raise self._doubt(
                    IndexKind.TIME, f"ends with {timestamp}, but there is {header.max_timestamp}"
                )
        self.max_timestamp = timestamp
        self.offset_of_max_timestamp = offset

    def _trust_max_timestamp(self, size: int) -> None:
        """`load_max_timestamp`, but -1 if that is in doubt, because an append must not fail."""
        try:
            self.load_max_timestamp(size)
        except (IndexInDoubt, CorruptBatch):
            self.max_timestamp = NO_TIMESTAMP
            self.offset_of_max_timestamp = self._files.base_offset

    def _last_time_entry(self) -> tuple[int, int]:
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            return self.time.last_entry
        except CorruptIndex as error:
            raise self._doubt(IndexKind.TIME, error.reason) from error

    def _headers(self, start: int, end: int) -> Iterator[BatchHeader]:
        walk = Walk(self._files.record_file, start, end, chunk=HEADERS)
        return (header for _, header, _, _ in walk)

    def time_is_complete(self, size: int) -> bool:
        """Whether the last time entry names the greatest timestamp, as in a rolled segment."""
        timestamp, offset = self.time.last_entry
        start = self.offset.lookup(offset)[1]
        return all(header.max_timestamp <= timestamp for header in self._headers(start, size))

    # Rebuilding.

    def new_scan(self, transactions: OpenTransactions) -> IndexScan:
        """A new scan of this segment; `transactions` are open at its base."""
        files, home = self._files, self._files.home
        return IndexScan(files.base_offset, home.index_interval, home.index_size, transactions)

    def rebuild(self, size: int) -> None:
        """Rebuild both indexes from the log, here and now."""
        scan = self.new_scan({})
        scan.run(self._files.record_file, size)
        self.install(scan, (None, None))

    def install(self, scan: IndexScan, written: tuple[str | None, str | None]) -> None:
        """Replace both indexes by what a scan has found, and believe them again.

        `written` are the paths of files that hold it already and are renamed; None: write it here.
        """
        files, fs = self._files, self._files.home.fs
        self._offset = self._time = None
        for path, made, content in (
            (files.offset_index_path, written[0], scan.offset_entries),
            (files.time_index_path, written[1], scan.time_entries),
        ):
            if made is not None:
                fs.rename(made, path)
                continue
            file = fs.open(path, create=True)
            file.truncate(0)
            file.pwrite(content, 0)
            file.close()
        self.max_timestamp = scan.max_timestamp
        self.offset_of_max_timestamp = scan.offset_of_max_timestamp
        self._bytes_since_entry = scan.bytes_since_entry
        self.free = 0
        self._suspect = None
        self._repairs += 1

    def restart(self) -> None:
        """Forget the entries, before recovery notes every batch again."""
        self._bytes_since_entry = 0
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = -1
        self._suspect = None

    def restart_from_last_entry(self) -> None:
        """`restart`, but keep the entries, which end with the batch that is read first: the last
        time entry is the greatest timestamp up to it."""
        self.restart()
        self.max_timestamp, self.offset_of_max_timestamp = self.time.last_entry

    # Cutting.

    def truncate_to(self, offset: int, size: int) -> None:
        """Drop the entries of batches that end at or above `offset`. `cut` has to follow."""
        try:
            self._drop_entries(offset)
        except CorruptIndex:
            self.rebuild(size)
            self._drop_entries(offset)

    def _drop_entries(self, offset: int) -> None:
        self.offset.truncate_to(offset)
        self.time.truncate_to(offset)

    def cut(self, size: int) -> None:
        """Note that the record file was cut to `size`: find the greatest timestamp again, which is
        that of the last time entry or a later one."""
        self._bytes_since_entry = 0
        timestamp, offset = self.time.last_entry
        start = self.offset.lookup(offset)[1] if size else 0
        for header in self._headers(start, size):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self.max_timestamp = timestamp if size else NO_TIMESTAMP
        self.offset_of_max_timestamp = offset

    def clear(self) -> None:
        """Drop all entries, and make the files as short."""
        for index in (self.offset, self.time):
            index.truncate()
            index.trim_to_valid_size()

    # Files.

    def ensure_exist(self) -> None:
        """Make the files if they are missing."""
        self.offset.ensure_exists()
        self.time.ensure_exists()

    def add_last_time_entry(self, size: int) -> None:
        """Add the greatest timestamp to the time index, even if that is full (S-ROLL-4)."""
        if self.max_timestamp == UNKNOWN:
            self._trust_max_timestamp(size)
        offset = self.offset_of_max_timestamp
        if self._suspect is None and offset - self._files.base_offset <= MAX_RELATIVE_OFFSET:
            try:
                self.time.maybe_append(self.max_timestamp, offset, skip_full_check=True)
            except (InvalidIndexAppend, CorruptIndex) as error:
                self._doubt(IndexKind.TIME, str(error))

    def finish(self, size: int) -> bool:
        """Add the last time entry and trim the files; True when that changed any."""
        self.free = 0  # the next entry may take the last slot
        before = self.time.entries
        self.add_last_time_entry(size)
        trimmed = self.offset.trim_to_valid_size()
        return self.time.trim_to_valid_size() or trimmed or self.time.entries > before

    @property
    def are_open(self) -> bool:
        """Whether any of them was used since the segment's files were opened."""
        return self._offset is not None or self._time is not None

    def write_entries(self) -> None:
        """Write entries held in memory to the files. Never raises: a sparser index is right."""
        for index in (self._offset, self._time):
            if index is not None:
                with suppress(OSError):  # a disk that failed shows when the records are synced
                    index.write_entries()

    def close(self) -> None:
        """Trim the files that are open, as a clean stop does; `release` has to follow."""
        for index in (self._offset, self._time):
            if index is not None:
                index.close()

    def release(self) -> None:
        """Drop the files without writing; the next use opens them again.

        Entries that were not written yet are lost.
        """
        self._offset = None
        self._time = None
        self.free = 0
