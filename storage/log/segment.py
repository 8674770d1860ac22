"""One segment: a run of batches in one file, with sparse indexes beside it.

It consists of parts, each with its own state:

    SegmentFiles           names, the open record file
    SegmentIndexes         offset and time index, the greatest timestamp
    AbortedTransactions    the transaction index

Invariants
  1. `size` counts whole, exposed batches only. A write that failed half-way left bytes beyond it;
     nobody reads there (S-READ-7) and recovery cuts them off.
  2. Files are opened at first use: ten thousand idle partitions cost no descriptors. Whichever is
     used first, the record file is opened, and `Openings` notes the segment then.
  3. Deleting drops the reference to the file and does not close it: slices handed out before stay
     readable (S-RET-7).

`storage.log.rolling` decides when a segment is full. Only `Log` and its parts, recovery and the
cleaner call a segment. Every method may raise OSError, which `Log` turns into `StorageError`.
"""

from protocol.records.batch import HEADER_UP_TO_MAGIC
from protocol.types import NO_TIMESTAMP
from storage.errors import IndexInDoubt
from storage.filesystem import File
from storage.log.aborted_transactions import AbortedTransactions
from storage.log.position import BatchPosition
from storage.log.scan import HEADERS, Ended, Walk
from storage.log.segment_files import SegmentFiles, SegmentHome
from storage.log.segment_indexes import UNKNOWN, SegmentIndexes


class LogSegment:
    """One segment of a log. Times are milliseconds, positions and sizes bytes."""

    __slots__ = (
        "__weakref__",
        "aborted",
        "base_offset",
        "created_ms",
        "files",
        "first_timestamp",
        "known_indexes",
        "size",
    )

    def __init__(
        self, home: SegmentHome, base_offset: int, *, size: int, created_ms: int, state: str = ""
    ) -> None:
        """A segment whose record file has `size` good bytes; nothing is opened here."""
        self.files = SegmentFiles(home, base_offset, state)
        self.aborted = AbortedTransactions(self.files, is_empty=not size)
        self.known_indexes: SegmentIndexes | None = None
        """The indexes as far as they are known; None before their first use. Use `indexes`."""
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.first_timestamp: int | None = None
        """Max timestamp of the first batch, from which time-based rolling counts (S-ROLL-1)."""

    @property
    def file(self) -> File:
        """The record file."""
        files = self.files
        if files.opened is None:
            openings = files.home.openings
            if openings is not None:
                openings.note(self)
        return files.record_file

    @property
    def indexes(self) -> SegmentIndexes:
        """Offset and time index, ready for use."""
        if self.files.opened is None:
            self.file  # noqa: B018  (opening it notes that this segment has files open)
        return self.known_indexes or self._make_indexes()

    def _make_indexes(self) -> SegmentIndexes:
        made = self.known_indexes = SegmentIndexes(self.files, is_empty=not self.size)
        return made

    # Timestamps.

    @property
    def max_timestamp(self) -> int:
        """Greatest batch timestamp; -1 when no batch has one. Raises IndexInDoubt."""
        return self._dated().max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """Last offset of the batch that has `max_timestamp`. Raises IndexInDoubt."""
        return self._dated().offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """`max_timestamp`, or if there is none, when the file was last written (S-TS-4)."""
        known = self.max_timestamp
        return known if known >= 0 else self.files.last_modified_ms()

    def _dated(self) -> SegmentIndexes:
        indexes = self.known_indexes or self._make_indexes()
        if indexes.max_timestamp == UNKNOWN:
            was_open = self.files.opened is not None
            self.indexes.load_max_timestamp(self.size)
            if not was_open:
                # A retention run reads the age of ten thousand segments: do not keep them open.
                self.release()
        return indexes

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
        """Index and expose the next `size` bytes that were written, as one batch."""
        position = self.size
        if position == 0:
            self.first_timestamp = max_timestamp
        indexes = self.known_indexes
        if indexes is None or self.files.opened is None:
            indexes = self.indexes
        indexes.note(size, last_offset, max_timestamp, position)
        self.aborted.leaves_open = True  # the note on the former end holds no longer
        self.size = position + size

    # Reading.

    def find(self, offset: int) -> BatchPosition | None:
        """Find the batch that holds `offset`, or the next higher one; see `SegmentIndexes.find`."""
        return self.indexes.find(offset, self.size)

    def find_for_sure(self, offset: int) -> BatchPosition | None:
        """`find`, for callers that cannot wait: indexes in doubt are rebuilt here and now.

        Raises CorruptBatch, OSError.
        """
        try:
            return self.find(offset)
        except IndexInDoubt:
            self.indexes.rebuild(self.size)
            return self.find(offset)

    def read_end(self) -> tuple[int, bool]:
        """The offset after the last batch (the base offset without one), and whether it is sure.

        Read from the last indexed batch on. False: the index leads to no batch, or what follows is
        not whole batches up to `size`.
        """
        if not self.size:
            return self.base_offset, True
        index = self.indexes.offset
        entry, start = index.lookup(index.last_offset)
        if not 0 <= start < self.size:
            return self.base_offset, False
        walk = Walk(self.file, start, self.size, chunk=HEADERS)
        after, met = self.base_offset, not start
        for _, header, _, _ in walk:
            after = header.last_offset + 1
            if not met and after > entry:
                if after != entry + 1:
                    return self.base_offset, False
                met = True
        return after, met and walk.ended is Ended.AT_END

    # Cutting.

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Drop the batch that holds `offset` and all after it; returns the bytes cut."""
        found = self.find_for_sure(offset)
        self.indexes.truncate_to(offset, self.size)
        self.aborted.truncate_to(offset)
        cut = 0
        if found is not None:
            cut = self.size - found.position
            self.file.truncate(found.position)
            self.size = found.position
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = None
        self.indexes.cut(self.size)
        return cut

    def clear(self) -> None:
        """Empty the files; do not use this object afterwards.

        The indexes first: after a crash they must not lead beyond the end of the record file.
        """
        files = self.files
        self.indexes.clear()
        files.home.fs.unlink(files.txn_index_path, missing_ok=True)
        if self.file.size():
            self.file.truncate(0)
        self.release()

    def restart(self) -> None:
        """Forget the content, before recovery notes every batch again."""
        self.size = 0
        self.first_timestamp = None
        self.indexes.restart()
        self.aborted.restart()

    def restart_from(self, position: int) -> None:
        """`restart`, but keep the content below `position`, where the last index entry leads.

        The right checksum of the transaction index is not known for batches before it.
        """
        self.restart()
        self.size = position
        self.aborted.sum = None
        self.indexes.restart_from_last_entry()

    # Files.

    def ensure_files(self) -> None:
        """Make the record file and both indexes if they are missing."""
        self.indexes.ensure_exist()

    def preallocate(self, size: int) -> None:
        """Give the record file its final length now (`preallocate=true`); `size` stays."""
        self.file.allocate(size)

    def become_inactive(self) -> None:
        """Finish a rolled segment: add the last time index entry, trim the files (S-ROLL-4)."""
        self.indexes.finish(self.size)
        self._trim()

    def finish(self) -> bool:
        """Trim opened files and add the last time index entry; True when that changed any."""
        indexes = self.known_indexes
        changed = indexes is not None and indexes.are_open and indexes.finish(self.size)
        return (self.files.opened is not None and self._trim()) or changed

    def _trim(self) -> bool:
        if self.file.size() <= self.size:
            return False
        self.file.truncate(self.size)
        return True

    def write_index_entries(self) -> None:
        """Write entries held in memory to the files. Never raises: a sparser index is right."""
        if self.known_indexes is not None:
            self.known_indexes.write_entries()

    def flush(self) -> None:
        """Sync records and indexes. May block for long."""
        self.write_index_entries()
        self.files.sync()

    def close(self) -> None:
        """Trim and close opened files, even under slices in use; they may be opened again."""
        self.finish()
        if self.files.opened is not None:
            self.files.opened.close()
        self.release()

    def let_go(self) -> None:
        """Close the files until the next use; slices that were handed out stay readable.

        The indexes of an active segment are trimmed, as by a clean stop. Raises OSError.
        """
        if self.known_indexes is not None:
            self.known_indexes.close()
        self.release()

    def release(self) -> None:
        """Drop all files without writing; slices that were handed out stay readable.

        Index entries that were not written yet are lost, which makes the index sparser.
        """
        files = self.files
        if files.home.openings is not None:
            files.home.openings.forget(self)
        files.opened = None
        if self.known_indexes is not None:
            self.known_indexes.release()
        self.aborted.release()

    def rename(self, state: str) -> list[str]:
        """Give all files another suffix ("", .deleted, .swap); returns the paths that exist now."""
        self.release()
        return self.files.rename(state)

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size}, {self.files.path})"

    def _check(self) -> None:
        """Every invariant that can be seen from here, by reading the whole file."""
        position, previous = 0, self.base_offset - 1
        for position, header, _, _ in Walk(self.file, 0, self.size):
            assert header.last_offset > previous, (header, previous)
            previous = header.last_offset
            position += header.size
        assert position == self.size, (position, self.size)
        assert self.size >= HEADER_UP_TO_MAGIC or self.size == 0
