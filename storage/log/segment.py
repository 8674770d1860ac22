"""One segment: a run of batches in one file, with sparse indexes beside it.

Files (names from `storage.paths`): `<base>.log` holds batches without gaps between them, `.index`
maps offsets to positions, `.timeindex` timestamps to offsets, `.txnindex` aborted transactions
(made at the first abort).

What holds
  1. `size` counts whole, exposed batches only. A write that failed half-way left bytes beyond it;
     nobody reads there (S-READ-7) and recovery cuts them off.
  2. Index entries never lie ahead of `size`. They are a shortcut: all that they say can be rebuilt
     from the record file (`storage.recovery`), so they are not synced on append.
  3. Files are opened at first use: ten thousand idle partitions cost no descriptors.
  4. An index entry is held against the log where it leads, in the read that is made there anyway:
     a batch has to end at its offset, or bear its timestamp. Which aborted transactions there are
     is known by a checksum (`aborted_sum`). What does not agree raises IndexInDoubt, is not used
     any more, and is rebuilt (`storage.log.mending`).
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
"""What an index entry's four bytes can hold."""

_END_CHUNK: Final = 64 * 1024
"""From the last index entry to the end: an index interval, mostly."""

_LONG_WAY: Final = 512
"""Reads of a search, after which it is the index that is asked why: ten milliseconds at most."""

_LOOKED_AT: Final = 1024 * 1024
"""How far behind the last time index entry a later timestamp is looked for. Where records come in
the order of their times, the next batch has one if an entry is missing."""

_MOST_REPAIRS: Final = 3
"""Of one segment: what is found wrong after that is not the index."""

_UNKNOWN: Final = -2
"""`max_timestamp` of a segment whose time index was not asked yet."""


class Openings(Protocol):
    """Told which segments have files open (`storage.open_files`)."""

    def note(self, segment: "LogSegment") -> None:
        """It is about to open some."""
        ...

    def forget(self, segment: "LogSegment") -> None:
        """It has none."""
        ...

    def make_room(self) -> None:
        """No descriptor was left: some segments let go of theirs."""
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
        """`file`, without the price of a property, where it is open."""
        self.openings: Openings | None = None
        """Set when the log is in service."""
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
        """Entries that both indexes take for sure, so that not each append asks them; 0: ask."""
        self.first_timestamp: int | None = None
        """Max timestamp of the first batch: what time-based rolling counts from (S-ROLL-1)."""
        self._max_timestamp = _UNKNOWN if size else NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset if size else -1
        self._suspect: IndexInDoubt | None = None
        """Why offset and time index are not used until they are rebuilt."""
        self._repairs = 0
        self.aborted_sum: Checksum | None = None if size else NO_ABORTED
        """What the transaction index has to hold (`TransactionIndex.checksum`); None: not known."""
        self.leaves_open = True
        """A transaction may be open at the segment's end, and a later one tell that it aborted."""

    # Parts, opened when first asked for.

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
        """It belongs to a log in service: whoever counts open files is told from now on."""
        self.openings = openings
        if self.opened_file is not None or self._offset_index is not None:
            self._note_opening()

    @property
    def path(self) -> str:
        """Of the record file."""
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
        """Raises CorruptIndex when the file contradicts itself."""
        if self._offset_index is None:
            self._note_opening()
            path = index_file(self._directory, self.base_offset, self._state)
            self._offset_index = OffsetIndex(self._fs, path, self.base_offset, self._index_size)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """Raises CorruptIndex when the file contradicts itself."""
        if self._time_index is None:
            self._note_opening()
            path = time_index_file(self._directory, self.base_offset, self._state)
            self._time_index = TimeIndex(self._fs, path, self.base_offset, self._index_size)
        return self._time_index

    @property
    def txn_index(self) -> TransactionIndex:
        """Its file is made at the first abort."""
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
        """Last offset of the batch that bears `max_timestamp`."""
        if self._max_timestamp == _UNKNOWN:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """`max_timestamp`, or when the file was last written where there is none (S-TS-4)."""
        known = self.max_timestamp
        return known if known >= 0 else self._fs.mtime_ms(self.path)

    def last_modified_ms(self) -> int:
        """When the record file was last written."""
        return self._fs.mtime_ms(self.path)

    def _load_max_timestamp(self) -> None:
        """From the last entry of the time index, which is held against the log first.

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
            # Who asks ten thousand segments for their age must not leave their files open.
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
        """Where the batch lies of which a time index entry speaks. Raises IndexInDoubt."""
        found = self.find(offset)
        if found is not None:
            head = Walk(self.file, found.position, found.position + found.size, chunk=_END_CHUNK)
            for _, header, _, _ in head:
                if header.max_timestamp == timestamp:
                    return found.position
        raise self._doubt(IndexKind.TIME, f"says {timestamp} of offset {offset}")

    def _doubt(self, kind: IndexKind, reason: str) -> Exception:
        """The index is not used any more. Returns what is to be raised."""
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
        """Put bytes after the last batch; `note_batch` makes them count."""
        self.file.pwrite(data, self.size)

    def note_batch(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """The next `size` bytes that were written are one batch: index and expose it (S-IDX-1).

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
        self.leaves_open = True  # whatever was known of an end that is not the end any more
        self.size = position + size

    def _trust_max_timestamp(self) -> None:
        """As `_load_max_timestamp`, where an append needs some answer."""
        try:
            self._load_max_timestamp()
        except (IndexInDoubt, CorruptBatch):
            self._max_timestamp = NO_TIMESTAMP
            self._offset_of_max_timestamp = self.base_offset

    def _add_entries(self, last_offset: int, position: int) -> None:
        """Index a batch; while the indexes are being rebuilt, that reads the batch as well."""
        if self._suspect is not None:
            return
        try:
            self._append_entries(last_offset, position)
        except (InvalidIndexAppend, CorruptIndex) as error:
            self._doubt(IndexKind.OFFSET, str(error))

    def _append_entries(self, last_offset: int, position: int) -> None:
        """Index a batch. What does not fit is left out: a sparser index is still right.

        The log rolls before that; only a follower's append of many batches may fill an index, and
        only segments of old logs (KAFKA-6264), until recovery has split them, hold offsets too far
        from their base. And no entry is worth a refusal when no descriptor is left for its index.
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
            # Counted anew: this append fits, and so do that many after it.
            self._free_entries = min(self.offset_index.free, self.time_index.free)
            if not self._free_entries:
                full = self.offset_index.is_full
                return RollReason.OFFSET_INDEX_FULL if full else RollReason.TIME_INDEX_FULL
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return RollReason.OFFSET_OVERFLOW
        return None

    # Reading.

    def find(self, offset: int) -> BatchPosition | None:
        """Where the batch lies that holds `offset`, or the next higher one (S-READ-2, S-READ-3).

        None when every batch ends below it. Raises CorruptBatch when the bytes make no sense,
        IndexInDoubt when the index does not.
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
        """`find`, for who cannot wait: what is in doubt is rebuilt here and now.

        Raises CorruptBatch, OSError.
        """
        try:
            return self.find(offset)
        except IndexInDoubt:
            self.rebuild_indexes()
            return self.find(offset)

    def start_for(self, timestamp: int, start_offset: int) -> int:
        """A position from which on every batch lies that reaches `timestamp` and `start_offset`.

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
        """An offset above all in the `size` bytes at `position`, where an entry tells one.

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
        """The offset after the last batch (the base offset without one), and whether all is whole.

        Read from the last indexed batch on. False: what follows makes no sense up to `size`, or
        the index leads astray.
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
        """Transactions that touch [offset, upper), and whether these are all there can be.

        Raises IndexInDoubt when the index is not what it has to be, or nobody knows.
        """
        return self._trusted_aborted().collect_aborted(offset, upper)

    def marker_after(self, offset: int, count: int) -> int | None:
        """The offset of the ABORT marker here that follows the first `count` at or above `offset`.

        Raises IndexInDoubt.
        """
        return self._trusted_aborted().marker_after(offset, count)

    def packed_aborted(self) -> bytes:
        """The entries of all transactions whose ABORT marker lies here. Raises IndexInDoubt."""
        return self._trusted_aborted().packed

    def _trusted_aborted(self) -> TransactionIndex:
        index = self.txn_index
        if index.checksum != self.aborted_sum:
            reason = "is not what was noted" if self.aborted_sum is not None else "not known yet"
            raise IndexInDoubt(index.path, self.base_offset, IndexKind.TRANSACTION, reason)
        return index

    def add_aborted(self, txn: AbortedTxn) -> None:
        """An ABORT marker was appended: index it. Raises OSError."""
        index = self.txn_index
        known = self.aborted_sum == index.checksum
        try:
            index.append(txn)
        except InvalidIndexAppend:
            known = False  # the next reader has it rebuilt
        self.aborted_sum = index.checksum if known else None

    def aborted_below(self, offset: int) -> Checksum | None:
        """What of `aborted_sum` is of markers below `offset`; None: not known. Raises OSError."""
        known = self.aborted_sum
        if known is None or known == NO_ABORTED:
            return known
        index = self.txn_index
        return index.checksum_below(offset) if index.checksum == known else None

    # Repairing.

    def know_aborted(self, *, leaves_open: bool) -> None:
        """The transaction index was held against the log: what it holds is right. Raises OSError.

        `leaves_open`: a transaction was open at the end.
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
        """Offset and time index from the log, here and now. Raises OSError."""
        scan = self.new_scan({})
        scan.run(self.file, self.size)
        self.install_indexes(scan, (None, None))

    def new_scan(self, transactions: dict[int, int]) -> IndexScan:
        """One that has read nothing yet."""
        return IndexScan(self.base_offset, self.index_interval, self._index_size, transactions)

    def install_indexes(self, scan: IndexScan, written: tuple[str | None, str | None]) -> None:
        """Put what a scan has found in the place of offset and time index. Raises OSError.

        `written` are files that hold it already and only need the names, where there are some.
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
        """Empty the files; this object is of no use afterwards.

        The indexes first: what they say of a record file that was cut would be nonsense.
        """
        for index in (self.offset_index, self.time_index):
            index.truncate()
            index.trim_to_valid_size()
        self._fs.unlink(self.txn_index.path, missing_ok=True)
        if self.file.size():
            self.file.truncate(0)
        self.release()

    def _reload_max_timestamp(self) -> None:
        """After a truncation: the last time index entry, or what the batches after it say."""
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
        """Forget what is known of the content: recovery notes every batch anew."""
        self.size = 0
        self.first_timestamp = None
        self.bytes_since_index_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = -1
        self._suspect = None
        self.aborted_sum = NO_ABORTED
        self.leaves_open = True

    def restart_from(self, position: int) -> None:
        """As `restart`, from the batch on that the last index entry leads to, at `position`.

        Both indexes end with that batch: the last time entry is the greatest timestamp up to it.
        Of the batches before it, nobody knows what the transaction index has to hold.
        """
        self.restart()
        self.size = position
        self.aborted_sum = None
        self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry

    # Life.

    def preallocate(self, size: int) -> None:
        """Give the record file its final length now (`preallocate=true`); `size` stays."""
        self.file.allocate(size)

    def become_inactive(self) -> None:
        """Rolled: last time index entry even if full, files cut to what they hold (S-ROLL-4)."""
        self._finish_indexes()
        if self.file.size() > self.size:
            self.file.truncate(self.size)

    def add_last_time_entry(self) -> None:
        """Name the greatest timestamp in the time index, even if that is full."""
        if self._max_timestamp == _UNKNOWN:
            self._trust_max_timestamp()
        offset = self._offset_of_max_timestamp
        if self._suspect is None and offset - self.base_offset <= MAX_RELATIVE_OFFSET:
            try:
                self.time_index.maybe_append(self._max_timestamp, offset, skip_full_check=True)
            except (InvalidIndexAppend, CorruptIndex) as error:
                self._doubt(IndexKind.TIME, str(error))

    def _finish_indexes(self) -> bool:
        self._free_entries = 0  # the entry that comes now may take the last place
        before = self.time_index.entries
        self.add_last_time_entry()
        trimmed = self.offset_index.trim_to_valid_size()
        return self.time_index.trim_to_valid_size() or trimmed or self.time_index.entries > before

    def finish(self) -> bool:
        """Bring opened files into the form of a closed segment; True when that changed any."""
        changed = False
        if self._offset_index is not None or self._time_index is not None:
            changed = self._finish_indexes()
        if self.opened_file is not None and self.opened_file.size() > self.size:
            self.opened_file.truncate(self.size)
            changed = True
        return changed

    def write_index_entries(self) -> None:
        """Entries that wait in memory are in the files. Never raises: a sparser index is right."""
        for index in (self._offset_index, self._time_index):
            if index is not None:
                with suppress(OSError):  # a disk that failed shows when the records are synced
                    index.write_entries()

    def flush(self) -> None:
        """Records and indexes are on the disk when this returns. May block for long.

        By path: what a recovery has read, or an earlier process has written, is not open.
        """
        self.write_index_entries()
        sync_files(self._fs, self.paths)

    def ensure_files(self) -> None:
        """Make the record file and empty indexes, so that the directory is complete."""
        self.file  # noqa: B018  (opening creates)
        self.offset_index.ensure_exists()
        self.time_index.ensure_exists()

    def close(self) -> None:
        """Trim and close what was opened, slices in use included; it may be opened again."""
        self.finish()
        if self.opened_file is not None:
            self.opened_file.close()
        self.release()

    def let_go(self) -> None:
        """Close what the next question opens again; slices that were handed out stay readable.

        The indexes of an active segment are cut to what they hold, as by a clean stop. Raises
        OSError.
        """
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close()
        self.release()

    def release(self) -> None:
        """Let go of all files without writing; slices that were handed out stay readable.

        Index entries that were not written yet are lost: the index is sparser.
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
        """The partition directory was renamed; open files stay open, indexes are opened again."""
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
