"""The right content of a segment's indexes, read from its record file.

One pass over the batches' headers makes the entries of all three. Offset and time index need
nothing else. Aborted transactions may have begun in earlier segments, so a scan for them begins
with the transactions that were open at the segment's base (`open_transactions`).

A scan stops where the log is damaged: its entries up to there are right, and `whole` is False.

A scan takes and returns plain values: `storage.log.mending` runs it in a worker.
"""

from collections.abc import Sequence
from typing import Final

from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from protocol.records.errors import RecordsError
from protocol.types import NO_TIMESTAMP
from storage.errors import CorruptSnapshot
from storage.filesystem import File, FileSystem
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from storage.index.offset_index import pack_entry as pack_offset
from storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from storage.index.time_index import pack_entry as pack_time
from storage.index.transaction_index import AbortedTxn
from storage.log.markers import marker_of
from storage.log.scan import Ended, Walk
from storage.paths import log_file
from storage.producers.snapshot import read_snapshot

_CHUNK: Final = 256 * 1024

OpenTransactions = dict[int, int]
"""Producer id -> offset of its open transaction's first record, in the order of these offsets."""


class IndexScan:
    """One pass; each `run` continues where the one before ended. Read the attributes after it."""

    __slots__ = (
        "_base",
        "_interval",
        "_last",
        "_most_offsets",
        "_most_times",
        "_open",
        "aborted",
        "bare_aborts",
        "bytes_since_entry",
        "max_timestamp",
        "offset_entries",
        "offset_of_max_timestamp",
        "position",
        "time_entries",
        "whole",
    )

    def __init__(
        self, base_offset: int, interval: int, index_size: int, transactions: OpenTransactions
    ) -> None:
        """`interval` and `index_size` are the segment's, in bytes; `transactions` are open at its
        base."""
        self._base = base_offset
        self._interval = interval
        self._most_offsets = index_size // OFFSET_ENTRY_SIZE * OFFSET_ENTRY_SIZE
        # One slot is kept for the entry that the roll appends.
        self._most_times = (index_size // TIME_ENTRY_SIZE - 1) * TIME_ENTRY_SIZE
        self._open = dict(transactions)
        self._last = base_offset - 1
        self.offset_entries = bytearray()
        self.time_entries = bytearray()
        self.aborted: list[AbortedTxn] = []
        self.bare_aborts: set[tuple[int, int]] = set()
        """(producer id, offset) of ABORT markers without data, which compaction may remove."""
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self.bytes_since_entry = 0
        self.position = 0
        """The position in bytes up to which batches are good."""
        self.whole = True

    def begin_with(self, transactions: OpenTransactions) -> None:
        """Set the transactions that are open at the segment's base."""
        self._open = dict(transactions)

    @property
    def last_offset(self) -> int:
        """Last offset of the last batch that was read."""
        return self._last

    @property
    def leaves_open(self) -> bool:
        """Whether a transaction is open at the end; a later segment may hold its ABORT marker."""
        return bool(self._open)

    def run(self, file: File, end: int) -> None:
        """Read on up to position `end`. Raises OSError."""
        walk = Walk(file, self.position, end, chunk=_CHUNK)
        for position, header, chunk, at in walk:
            if header.last_offset <= self._last:
                self.whole = False
                return
            try:
                self._note_transaction(header, chunk, at)
            except RecordsError:
                self.whole = False
                return
            self._note(position, header)
            self.position = position + header.size
        # The walk of a file that was cut ends AT_END as well, but below `end`.
        self.whole = walk.ended is Ended.AT_END and self.position == end

    def _note(self, position: int, header: BatchHeader) -> None:
        last = self._last = header.last_offset
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.offset_of_max_timestamp = last
        if self.bytes_since_entry > self._interval:
            relative = last - self._base
            if relative <= MAX_RELATIVE_OFFSET:
                if len(self.offset_entries) < self._most_offsets:
                    self.offset_entries += pack_offset(relative, position)
                if len(self.time_entries) < self._most_times:
                    self.add_time_entry()
            self.bytes_since_entry = 0
        self.bytes_since_entry += header.size

    def add_time_entry(self) -> None:
        """Add the greatest timestamp so far if it is above the last entry's, as a roll does."""
        entries = self.time_entries
        known = int.from_bytes(entries[-12:-4], "big", signed=True) if entries else NO_TIMESTAMP
        relative = self.offset_of_max_timestamp - self._base
        if self.max_timestamp > known and 0 <= relative <= MAX_RELATIVE_OFFSET:
            entries += pack_time(self.max_timestamp, relative)

    def _note_transaction(self, header: BatchHeader, chunk: memoryview, at: int) -> None:
        if header.magic < 2 or header.producer_id < 0:
            return
        if header.attributes & CONTROL_BIT:
            marker, _ = marker_of(chunk, at)
            first = self._open.pop(header.producer_id, None) if marker is not None else None
            if marker is None or marker.is_commit:
                return
            if first is None:
                self.bare_aborts.add((header.producer_id, header.last_offset))
                return
            stable = next(iter(self._open.values()), header.last_offset + 1)
            self.aborted.append(
                AbortedTxn(
                    producer_id=header.producer_id,
                    first_offset=first,
                    last_offset=header.last_offset,
                    last_stable_offset=stable,
                )
            )
        elif header.attributes & TRANSACTIONAL_BIT:
            self._open.setdefault(header.producer_id, header.base_offset)

    @property
    def open_transactions(self) -> OpenTransactions:
        """The transactions that are open at the current position."""
        return dict(self._open)


def open_transactions(
    fs: FileSystem,
    directory: str,
    base_offset: int,
    snapshots: Sequence[tuple[int, str]],
    segments: Sequence[tuple[int, int]],
) -> OpenTransactions:
    """The transactions that were open at `base_offset`. Raises OSError.

    `snapshots` are (offset, path) of producer snapshots not above it, ascending; `segments` are
    (base offset, size in bytes) of the segments before it. Batches are read from the newest
    readable snapshot up to `base_offset`: mostly none, as each segment's base has a snapshot.
    """
    known, start = OpenTransactions(), -1
    for offset, path in reversed(snapshots):
        try:
            entries = read_snapshot(fs, path)
        except (CorruptSnapshot, FileNotFoundError):
            continue
        firsts = sorted(
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in entries
            if entry.current_txn_first_offset >= 0
        )
        known, start = {producer_id: first for first, producer_id in firsts}, offset
        break
    bases = [base for base, _ in segments] + [base_offset]
    for at, (base, size) in enumerate(segments):
        if bases[at + 1] <= start:
            continue
        known = _read_through(fs, log_file(directory, base), base, size, start, known)
    return known


def _read_through(
    fs: FileSystem, path: str, base: int, size: int, start: int, known: OpenTransactions
) -> OpenTransactions:
    """The transactions open after a segment, given those `known` at offset `start`."""
    scan = IndexScan(base, size, OFFSET_ENTRY_SIZE * 2, known)
    file = fs.open(path, writable=False)
    for _, header, chunk, at in Walk(file, 0, size, chunk=_CHUNK):
        if header.last_offset < start:
            continue
        try:
            scan._note_transaction(header, chunk, at)
        except RecordsError:
            break
    return scan.open_transactions
