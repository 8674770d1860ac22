"""One segment: a run of batches in one file, with sparse indexes beside it.

Files (names from `storage.paths`): `<base>.log` holds batches without gaps between them, `.index`
maps offsets to positions, `.timeindex` timestamps to offsets, `.txnindex` aborted transactions
(made at the first abort).

What holds
  1. `size` counts whole, exposed batches only. A write that failed half-way left bytes beyond it;
     nobody reads there (S-READ-7) and recovery cuts them off.
  2. Index entries never lead beyond `size`. They can all be rebuilt from the record file
     (`storage.recovery`), so they are not synced on append.
  3. Files are opened at first use: ten thousand idle partitions cost no descriptors.
  4. An index entry is compared with the log where it leads, in the read that is made there anyway:
     a batch has to end at its offset, or have its timestamp. The transaction index is compared with
     a checksum (`aborted_sum`). An index that does not agree raises IndexInDoubt, is not used any
     more, and is rebuilt (`storage.log.mending`).
  5. Deleting drops the reference to the file and does not close it: slices handed out before stay
     readable (S-RET-7).

Only `Log` and its helpers in this package call a segment. Every method may raise OSError, which
`Log` turns into `StorageError`.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol

from protocol.records.batch import HEADER_UP_TO_MAGIC
from protocol.records.errors import CorruptBatch
from protocol.types import NO_TIMESTAMP
from storage.clock import Clock
from storage.errors import (
    CorruptIndex,
    IndexInDoubt,
    IndexKind,
    InvalidIndexAppend,
    is_shortage,
)
from storage.filesystem import File, FileSystem
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import NO_ABORTED, AbortedTxn, Checksum, TransactionIndex
from storage.log.index_scan import IndexScan
from storage.log.position import NO_ENTRY, Astray, BatchPosition, find_batch
from storage.log.results import RollReason
from storage.log.scan import Ended, Walk
from storage.paths import TEMPORARY_SUFFIX, index_file, log_file, time_index_file, txn_index_file
from storage.syncing import sync_files

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""The greatest relative offset that an index entry's four bytes can hold."""

_END_CHUNK: Final = 64 * 1024
"""Bytes per read from the last index entry to the end: mostly one index interval."""

_LONG_WAY: Final = 512
"""A search that takes so many reads, ten milliseconds at most, means that the index has gaps."""

_LOOKED_AT: Final = 1024 * 1024
"""Bytes after the last time index entry in which a later timestamp is looked for. If timestamps
rise with offsets and an entry is missing, the next batch has one."""

_MOST_REPAIRS: Final = 3
"""Repairs of one segment's indexes, after which contradictions mean that the log is damaged."""

_UNKNOWN: Final = -2
"""`max_timestamp` before the time index was read."""


class Openings(Protocol):
    """Notes which segments have files open (`storage.open_files`)."""

    def note(self, segment: "LogSegment") -> None:
        """Note that `segment` is about to open files."""
        ...

    def forget(self, segment: "LogSegment") -> None:
        """Note that `segment` has no files open."""
        ...

    def make_room(self) -> None:
        """Have some segments let go of their files: no descriptor is left."""
        ...


class LogSegment:
    """One segment of a log. Times are milliseconds, positions and sizes bytes."""

    __slots__ = (
        "__weakref__",
        "_directory",
        "_free_entries",
        "_fs",
        "_index_size",
        "_max_timestamp",
        "_offset_index",
        "_offset_of_max_timestamp",
        "_repairs",
        "_state",
        "_suspect",
        "_time_index",
        "_txn_index",
        "aborted_sum",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "first_timestamp",
        "index_interval",
        "jitter_ms",
        "leaves_open",
        "opened_file",
        "openings",
        "size",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        base_offset: int,
        *,
        size: int,
        created_ms: int,
        index_interval: int,
        index_size: int,
        jitter_ms: int = 0,
        state: str = "",
    ) -> None:
        """A segment whose record file has `size` good bytes; nothing is opened here."""
        self._fs = fs
        self._directory = directory
        self._state = state
        self._index_size = index_size
        self.opened_file: File | None = None
        """`file` if it is open, as a plain attribute, which is cheaper than the property."""
        self.openings: Openings | None = None
        """Set while the log is in service."""
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.index_interval = index_interval
        self.jitter_ms = jitter_ms
        self.bytes_since_index_entry = 0
        self._free_entries = 0
        """How many entries both indexes have room for, so that appends need not ask; 0: ask."""
        self.first_timestamp: int | None = None
        """Max timestamp of the first batch, from which time-based rolling counts (S-ROLL-1)."""
        self._max_timestamp = _UNKNOWN if size else NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset if size else -1
        self._suspect: IndexInDoubt | None = None
        """Why offset and time index are not used until they are rebuilt; None: they are used."""
        self._repairs = 0
        self.aborted_sum: Checksum | None = None if size else NO_ABORTED
        """The right checksum of the transaction index (`TransactionIndex.checksum`); None: not
        known."""
        self.leaves_open = True
        """Whether a transaction may be open at the end, with an ABORT marker in a later segment."""

    # Parts, opened at first use.

    @property
    def file(self) -> File:
        """The record file."""
        if self.opened_file is None:
            self._note_opening()
            self.opened_file = self._fs.open(self.path, create=True)
        return self.opened_file

    def _note_opening(self) -> None:
        if self.openings is not None:
            self.openings.note(self)

    def connect(self, openings: Openings | None) -> None:
        """Note opened files with `openings` from now on: the segment is in service."""
        self.openings = openings
        if self.opened_file is not None or self._offset_index is not None:
            self._note_opening()

    @property
    def path(self) -> str:
        """Path of the record file."""
        return log_file(self._directory, self.base_offset, self._state)

    @property
    def paths(self) -> tuple[str, str, str, str]:
        """Record file, offset index, time index, transaction index; they need not all exist."""
        where = (self._directory, self.base_offset, self._state)
        return (
            log_file(*where),
            index_file(*where),
            time_index_file(*where),
            txn_index_file(*where),
        )

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index. Raises CorruptIndex when the file contradicts itself."""
        if self._offset_index is None:
            self._note_opening()
            path = index_file(self._directory, self.base_offset, self._state)
            self._offset_index = OffsetIndex(self._fs, path, self.base_offset, self._index_size)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index. Raises CorruptIndex when the file contradicts itself."""
        if self._time_index is None:
            self._note_opening()
            path = time_index_file(self._directory, self.base_offset, self._state)
            self._time_index = TimeIndex(self._fs, path, self.base_offset, self._index_size)
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        """The transaction index, whose file is made at the first abort."""
        if self._txn_index is None:
            path = txn_index_file(self._directory, self.base_offset, self._state)
            self._txn_index = TransactionIndex(self._fs, path, self.base_offset)
        return self._txn_index

    # Timestamps.

    @property
    def max_timestamp(self) -> int:
        """Greatest batch timestamp; -1 when no batch has one."""
        if self._max_timestamp == _UNKNOWN:
            self._load_max_timestamp()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that has `max_timestamp`."""
        if self._max_timestamp == _UNKNOWN:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """`max_timestamp`, or if there is none, when the file was last written (S-TS-4)."""
        known = self.max_timestamp
        return known if known >= 0 else self._fs.mtime_ms(self.path)

    def last_modified_ms(self) -> int:
        """When the record file was last written."""
        return self._fs.mtime_ms(self.path)

    def _load_max_timestamp(self) -> None:
        """Load it from the last entry of the time index, which is compared with the log first.

        Raises IndexInDoubt.
        """
        was_open = self.opened_file is not None or self._offset_index is not None
        timestamp, offset = self._last_time_entry()
        position = 0 if timestamp < 0 else self._position_of_time(timestamp, offset)
        end = min(self.size, position + _LOOKED_AT)
        for _, header, _, _ in Walk(self.file, position, end, chunk=_END_CHUNK):
            if header.max_timestamp > timestamp:
                raise self._doubt(
                    IndexKind.TIME, f"ends with {timestamp}, but there is {header.max_timestamp}"
                )
        if not was_open:
            # A retention run reads the age of ten thousand segments and must not keep them open.
            self.release()
        self._max_timestamp = timestamp
        self._offset_of_max_timestamp = offset

    def _last_time_entry(self) -> tuple[int, int]:
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            return self.time_index.last_entry
        except CorruptIndex as error:
            raise self._doubt(IndexKind.TIME, error.reason) from error

    def _position_of_time(self, timestamp: int, offset: int) -> int:
        """Position of the batch that a time index entry names. Raises IndexInDoubt."""
        found = self.find(offset)
        if found is not None:
            head = Walk(self.file, found.position, found.position + found.size, chunk=_END_CHUNK)
            for _, header, _, _ in head:
                if header.max_timestamp == timestamp:
                    return found.position
        raise self._doubt(IndexKind.TIME, f"says {timestamp} of offset {offset}")

    def _doubt(self, kind: IndexKind, reason: str) -> Exception:
        """Stop using both indexes until a repair; returns the exception to raise."""
        path = self.paths[{IndexKind.OFFSET: 1, IndexKind.TIME: 2}[kind]]
        if self._repairs >= _MOST_REPAIRS:
            return CorruptBatch(f"{path}: {reason}, although it was rebuilt")
        self._suspect = IndexInDoubt(path, self.base_offset, kind, reason)
        return self._suspect.fresh()

    def read_first_timestamp(self) -> int:
        """Max timestamp of the first batch, -1 when the segment is empty or the batch has none."""
        if self.first_timestamp is None:
            for _, header, _, _ in Walk(self.file, 0, self.size, chunk=4096):
                self.first_timestamp = header.max_timestamp
                break
            else:
                return NO_TIMESTAMP
        return self.first_timestamp

    # Appending.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes after the last batch; `note_batch` then exposes them."""
        self.file.pwrite(data, self.size)

    def note_batch(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Index and expose the next `size` bytes that were written, as one batch (S-IDX-1).

        Index entry: last offset of the batch, position of its start; only when more than
        `index.interval.bytes` were written since the last entry, so never for the first batch.
        """
        position = self.size
        if position == 0:
            self.first_timestamp = max_timestamp
        if self._max_timestamp == _UNKNOWN:
            self._trust_max_timestamp()
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_index_entry > self.index_interval:
            self._add_entries(last_offset, position)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += size
        self.leaves_open = True  # what was known of the former end no longer holds
        self.size = position + size

    def _trust_max_timestamp(self) -> None:
        """As `_load_max_timestamp`, but -1 if that is in doubt: an append must go on."""
        try:
            self._load_max_timestamp()
        except (IndexInDoubt, CorruptBatch):
            self._max_timestamp = NO_TIMESTAMP
            self._offset_of_max_timestamp = self.base_offset

    def _add_entries(self, last_offset: int, position: int) -> None:
        """Index a batch, unless the indexes wait for a rebuild, which reads the batch as well."""
        if self._suspect is not None:
            return
        try:
            self._append_entries(last_offset, position)
        except (InvalidIndexAppend, CorruptIndex) as error:
            self._doubt(IndexKind.OFFSET, str(error))

    def _append_entries(self, last_offset: int, position: int) -> None:
        """Index a batch; leave out an entry that does not fit, as a sparser index is still right.

        Mostly the log rolls first. But a follower's append of many batches may fill an index,
        segments of old logs (KAFKA-6264) hold offsets too far from their base until recovery splits
        them, and without a free descriptor an index cannot be opened: no reason to fail an append.
        """
        try:
            self._try_to_add_entries(last_offset, position)
        except OSError as error:
            if not is_shortage(error):
                raise

    def _try_to_add_entries(self, last_offset: int, position: int) -> None:
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return
        if self._free_entries:
            self._free_entries -= 1
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
            return
        if not self.offset_index.is_full:
            self.offset_index.append(last_offset, position)
        if not self.time_index.is_full:
            self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)

    def roll_reason(
        self,
        incoming: int,
        max_timestamp: int,
        last_offset: int,
        *,
        segment_bytes: int,
        segment_ms: int,
        clock: Clock,
    ) -> RollReason | None:
        """Why `incoming` bytes must go to a new segment, or None (S-ROLL-5)."""
        if self.size > segment_bytes - incoming:
            return RollReason.SIZE
        if self.size:
            first = self.first_timestamp
            if first is None:
                first = self.read_first_timestamp()
            waited = max_timestamp - first if first >= 0 else clock.wall_ms() - self.created_ms
            if waited > segment_ms - self.jitter_ms:
                return RollReason.TIME
        if not self._free_entries and self._suspect is None:
            # Count again: this append fits, and so do as many later ones.
            self._free_entries = min(self.offset_index.free, self.time_index.free)
            if not self._free_entries:
                full = self.offset_index.is_full
                return RollReason.OFFSET_INDEX_FULL if full else RollReason.TIME_INDEX_FULL
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return RollReason.OFFSET_OVERFLOW
        return None

    # Reading.

    def find(self, offset: int) -> BatchPosition | None:
        """Find the batch that holds `offset`, or the next higher one (S-READ-2, S-READ-3).

        None when every batch ends below it. Raises CorruptBatch for damaged records, IndexInDoubt
        for a wrong index.
        """
        size = self.size
        if size <= self.index_interval:
            # Before the first possible entry there is nothing to look up.
            return find_batch(self.file, offset, 0, size)
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            entry, start = self.offset_index.lookup(offset)
            return find_batch(
                self.opened_file or self.file,
                offset,
                start,
                size,
                entry=entry if entry != self.base_offset or start else NO_ENTRY,
                most_reads=0 if self._repairs else _LONG_WAY,
            )
        except CorruptIndex as error:
            raise self._doubt(IndexKind.OFFSET, error.reason) from error
        except Astray as error:
            raise self._doubt(IndexKind.OFFSET, str(error)) from None

    def find_for_sure(self, offset: int) -> BatchPosition | None:
        """`find`, for callers that cannot wait: indexes in doubt are rebuilt here and now.

        Raises CorruptBatch, OSError.
        """
        try:
            return self.find(offset)
        except IndexInDoubt:
            self.rebuild_indexes()
            return self.find(offset)

    def start_for(self, timestamp: int, start_offset: int) -> int:
        """A position at or before every batch that reaches both `timestamp` and `start_offset`.

        Raises IndexInDoubt, CorruptBatch.
        """
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            dated, indexed = self.time_index.lookup(timestamp)
        except CorruptIndex as error:
            raise self._doubt(IndexKind.TIME, error.reason) from error
        if dated >= 0 and indexed > start_offset:
            return self._position_of_time(dated, indexed)
        found = self.find(max(start_offset, self.base_offset))
        return self.size if found is None else found.position

    def bound_of(self, position: int, size: int) -> int | None:
        """An offset above all in the `size` bytes at `position`, from an index entry; else None.

        Raises IndexInDoubt.
        """
        if self._suspect is not None:
            raise self._suspect.fresh()
        try:
            entry = self.offset_index.upper_bound(position, size)
        except CorruptIndex as error:
            raise self._doubt(IndexKind.OFFSET, error.reason) from error
        if entry is None:
            return None
        offset, at = entry
        try:
            found = find_batch(self.file, offset, at, self.size, entry=offset)
        except (Astray, CorruptBatch):
            found = None
        if found is None:
            raise self._doubt(IndexKind.OFFSET, f"says that a batch up to {offset} begins at {at}")
        return offset

    def read_end(self) -> tuple[int, bool]:
        """The offset after the last batch (the base offset without one), and whether it is sure.

        Read from the last indexed batch on. False: the index leads to no batch, or what follows is
        not whole batches up to `size`.
        """
        if not self.size:
            return self.base_offset, True
        index = self.offset_index
        entry, start = index.lookup(index.last_offset)
        if not 0 <= start < self.size:
            return self.base_offset, False
        walk = Walk(self.file, start, self.size, chunk=_END_CHUNK)
        after, met = self.base_offset, not start
        for _, header, _, _ in walk:
            after = header.last_offset + 1
            if not met and after > entry:
                if after != entry + 1:
                    return self.base_offset, False
                met = True
        return after, met and walk.ended is Ended.AT_END

    def aborted_in(self, offset: int, upper: int) -> tuple[list[AbortedTxn], bool]:
        """Aborted transactions that overlap [offset, upper), and whether later segments have none.

        Raises IndexInDoubt when the index is wrong or was not compared with the log yet.
        """
        return self._trusted_aborted().collect_aborted(offset, upper)

    def marker_after(self, offset: int, count: int) -> int | None:
        """The offset of the ABORT marker after the first `count` at or above `offset`; None if this
        segment has no more. Raises IndexInDoubt."""
        return self._trusted_aborted().marker_after(offset, count)

    def packed_aborted(self) -> bytes:
        """The entries of all transactions with an ABORT marker in here. Raises IndexInDoubt."""
        return self._trusted_aborted().packed

    def _trusted_aborted(self) -> TransactionIndex:
        index = self.txn_index
        if index.checksum != self.aborted_sum:
            reason = "is not what was noted" if self.aborted_sum is not None else "not known yet"
            raise IndexInDoubt(index.path, self.base_offset, IndexKind.TRANSACTION, reason)
        return index

    def add_aborted(self, txn: AbortedTxn) -> None:
        """Index an ABORT marker that was appended. Raises OSError."""
        index = self.txn_index
        known = self.aborted_sum == index.checksum
        try:
            index.append(txn)
        except InvalidIndexAppend:
            known = False  # the next committed read has the index rebuilt
        self.aborted_sum = index.checksum if known else None

    def aborted_below(self, offset: int) -> Checksum | None:
        """The checksum of the entries of markers below `offset`; None: unknown. Raises OSError."""
        known = self.aborted_sum
        if known is None or known == NO_ABORTED:
            return known
        index = self.txn_index
        return index.checksum_below(offset) if index.checksum == known else None

    # Repairing.

    def know_aborted(self, *, leaves_open: bool) -> None:
        """Take the transaction index as right: it was compared with the log. Raises OSError.

        `leaves_open`: whether a transaction was open at the end.
        """
        self.aborted_sum = self.txn_index.checksum
        self.leaves_open = leaves_open

    def rewrite_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Make these the content of the transaction index. Raises OSError."""
        path = self.txn_index.path
        file = self._fs.open(path + TEMPORARY_SUFFIX, create=True)
        file.truncate(0)
        file.pwrite(b"".join(txn.pack() for txn in transactions), 0)
        file.close()
        self._fs.rename(path + TEMPORARY_SUFFIX, path)
        self._txn_index = None

    def rebuild_indexes(self) -> None:
        """Rebuild offset and time index from the log, here and now. Raises OSError."""
        scan = self.new_scan({})
        scan.run(self.file, self.size)
        self.install_indexes(scan, (None, None))

    def new_scan(self, transactions: dict[int, int]) -> IndexScan:
        """A new scan of this segment; `transactions` are open at its base."""
        return IndexScan(self.base_offset, self.index_interval, self._index_size, transactions)

    def install_indexes(self, scan: IndexScan, written: tuple[str | None, str | None]) -> None:
        """Replace offset and time index by what a scan has found. Raises OSError.

        `written` are the paths of files that hold it already and are renamed; None: write it here.
        """
        contents = (scan.offset_entries, scan.time_entries)
        self._offset_index = self._time_index = None
        for path, made, content in zip(self.paths[1:3], written, contents, strict=True):
            if made is not None:
                self._fs.rename(made, path)
                continue
            file = self._fs.open(path, create=True)
            file.truncate(0)
            file.pwrite(content, 0)
            file.close()
        self._max_timestamp = scan.max_timestamp
        self._offset_of_max_timestamp = scan.offset_of_max_timestamp
        self.bytes_since_index_entry = scan.bytes_since_entry
        self._free_entries = 0
        self._suspect = None
        self._repairs += 1

    # Truncating.

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop the batch that holds `offset` and all after it; returns the bytes cut."""
        found = self.find_for_sure(offset)
        try:
            self._truncate_indexes(offset)
        except CorruptIndex:
            self.rebuild_indexes()
            self._truncate_indexes(offset)
        known = self.txn_index.checksum == self.aborted_sum
        self.txn_index.truncate_to(offset)
        self.aborted_sum = self.txn_index.checksum if known else None
        self.leaves_open = True
        cut = 0
        if found is not None:
            cut = self.size - found.position
            self.file.truncate(found.position)
            self.size = found.position
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = None
        self.bytes_since_index_entry = 0
        self._reload_max_timestamp()
        return cut

    def _truncate_indexes(self, offset: int) -> None:
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)

    def clear(self) -> None:
        """Empty the files; do not use this object afterwards.

        The indexes first: after a crash they must not lead beyond the end of the record file.
        """
        for index in (self.offset_index, self.time_index):
            index.truncate()
            index.trim_to_valid_size()
        self._fs.unlink(self.txn_index.path, missing_ok=True)
        if self.file.size():
            self.file.truncate(0)
        self.release()

    def _reload_max_timestamp(self) -> None:
        """Find the max timestamp after a truncation: the last time index entry's or a later one."""
        timestamp, offset = self.time_index.last_entry
        start = self.offset_index.lookup(offset)[1] if self.size else 0
        for _, header, _, _ in Walk(self.file, start, self.size):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        self._max_timestamp = timestamp if self.size else NO_TIMESTAMP
        self._offset_of_max_timestamp = offset

    def time_index_is_complete(self) -> bool:
        """Whether the last entry names the greatest timestamp, as in a segment that was rolled."""
        timestamp, offset = self.time_index.last_entry
        start = self.offset_index.lookup(offset)[1]
        walk = Walk(self.file, start, self.size, chunk=_END_CHUNK)
        return all(header.max_timestamp <= timestamp for _, header, _, _ in walk)

    def restart(self) -> None:
        """Forget the content, before recovery notes every batch again."""
        self.size = 0
        self.first_timestamp = None
        self.bytes_since_index_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = -1
        self._suspect = None
        self.aborted_sum = NO_ABORTED
        self.leaves_open = True

    def restart_from(self, position: int) -> None:
        """As `restart`, but keep what lies below `position`, where the last index entry leads.

        Both indexes end with the batch there: the last time entry is the greatest timestamp up to
        it. The right checksum of the transaction index is not known for batches before it.
        """
        self.restart()
        self.size = position
        self.aborted_sum = None
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry

    # Files.

    def preallocate(self, size: int) -> None:
        """Give the record file its final length now (`preallocate=true`); `size` stays."""
        self.file.allocate(size)

    def become_inactive(self) -> None:
        """Finish a rolled segment: add the last time index entry, trim the files (S-ROLL-4)."""
        self._finish_indexes()
        if self.file.size() > self.size:
            self.file.truncate(self.size)

    def add_last_time_entry(self) -> None:
        """Add the greatest timestamp to the time index, even if that is full."""
        if self._max_timestamp == _UNKNOWN:
            self._trust_max_timestamp()
        offset = self._offset_of_max_timestamp
        if self._suspect is None and offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            try:
                self.time_index.maybe_append(self._max_timestamp, offset, skip_full_check=True)
            except (InvalidIndexAppend, CorruptIndex) as error:
                self._doubt(IndexKind.TIME, str(error))

    def _finish_indexes(self) -> bool:
        self._free_entries = 0  # the next entry may take the last slot
        before = self.time_index.entries
        self.add_last_time_entry()
        trimmed = self.offset_index.trim_to_valid_size()
        return self.time_index.trim_to_valid_size() or trimmed or self.time_index.entries > before

    def finish(self) -> bool:
        """Trim opened files and add the last time index entry; True when that changed any."""
        changed = False
        if self._offset_index is not None or self._time_index is not None:
            changed = self._finish_indexes()
        if self.opened_file is not None and self.opened_file.size() > self.size:
            self.opened_file.truncate(self.size)
            changed = True
        return changed

    def write_index_entries(self) -> None:
        """Write entries held in memory to the files. Never raises: a sparser index is right."""
        for index in (self._offset_index, self._time_index):
            if index is not None:
                with suppress(OSError):  # a disk that failed shows when the records are synced
                    index.write_entries()

    def flush(self) -> None:
        """Sync records and indexes. May block for long.

        By path, because files that recovery read or an earlier process wrote may not be open.
        """
        self.write_index_entries()
        sync_files(self._fs, self.paths)

    def ensure_files(self) -> None:
        """Make the record file and both indexes if they are missing."""
        self.file  # noqa: B018  (opening creates)
        self.offset_index.ensure_exists()
        self.time_index.ensure_exists()

    def close(self) -> None:
        """Trim and close opened files, also under slices in use; they may be opened again."""
        self.finish()
        if self.opened_file is not None:
            self.opened_file.close()
        self.release()

    def let_go(self) -> None:
        """Close the files until the next use; slices that were handed out stay readable.

        The indexes of an active segment are trimmed, as by a clean stop. Raises OSError.
        """
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close()
        self.release()

    def release(self) -> None:
        """Drop all files without writing; slices that were handed out stay readable.

        Index entries that were not written yet are lost, which makes the index sparser.
        """
        if self.openings is not None:
            self.openings.forget(self)
        self.opened_file = None
        self._offset_index = None
        self._time_index = None
        self._txn_index = None
        self._free_entries = 0

    def rename(self, state: str) -> list[str]:
        """Give all files another suffix ("", .deleted, .swap); returns the paths that exist now."""
        old = self.paths
        self.release()
        self._state = state
        moved = []
        for before, after in zip(old, self.paths, strict=True):
            if self._fs.exists(before):
                self._fs.rename(before, after)
                moved.append(after)
        return moved

    def moved_to(self, directory: str) -> None:
        """Note that the partition directory was renamed; all files are opened again when used."""
        self.release()
        self._directory = directory

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size}, path={self.path})"

    def _check(self) -> None:
        """Every invariant that can be seen from here, by reading the whole file."""
        position, previous = 0, self.base_offset - 1
        positions = {0}
        for position, header, _, _ in Walk(self.file, 0, self.size):
            assert header.last_offset > previous, (header, previous)
            previous = header.last_offset
            positions.add(position)
            position += header.size
        assert position == self.size, (position, self.size)
        assert self.size >= HEADER_UP_TO_MAGIC or self.size == 0
