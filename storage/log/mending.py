"""Rebuilding indexes that contradict their log, while the log serves on.

A read that finds one (`IndexInDoubt`, raised by `LogSegment`) stops: a fetch gets no records for
the moment and is woken after the repair, other requests get `BeingRepaired`. Each damaged index is
logged once and counted by kind.

A repair has a thread read the segment's batches (`storage.log.index_scan`) and write the new files;
the loop gives them their names. Batches appended meanwhile are read on the loop. If the log was
cut, moved or deleted meanwhile, or retention took a segment that had to be read, the result is
dropped, and the next read that finds the doubt begins another repair. A disk error during the
repair takes the directory offline; if the log itself is damaged, the indexes end before the damage.

The transaction index is also compared with the log once when its right content is not known: after
Kafka has used the directory, or when it does not begin with what was noted of it beside the
recovery point (`storage.aborted_checkpoint`). Only if it differs it is damaged. In a compacted log
it may name transactions whose data is gone, or lack some that a producer snapshot still has: that
makes no difference to readers, and is corrected without being logged as damage.

A log without a broker (a tool, a test) is repaired here and now. Parts of a `Log` use this.
"""

import logging
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from crc32c import crc32c

from protocol.types import TopicPartition
from storage.errors import BeingRepaired, IndexInDoubt, IndexKind
from storage.filesystem import FileSystem
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.log.aborted_sums import AbortedSums
from storage.log.durability import Durability
from storage.log.guard import DiskGuard
from storage.log.index_scan import IndexScan, OpenTransactions, open_transactions
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.paths import temporary_file
from storage.producers.snapshots import SnapshotFiles
from storage.waits import Work, at_once, call

_log = logging.getLogger(__name__)

_GREW_BY: Final = 1024 * 1024
"""If a segment grew by more bytes than this, the thread reads them, not the loop."""

Result = TypeVar("Result")


def _nobody(_: IndexKind) -> None:
    """The default for `damaged`: not counted."""


Noted = Callable[[IndexInDoubt], None]
"""Called with a doubt whose repair has to be begun."""


@dataclass(slots=True)
class _Scanned:
    """The findings of a thread."""

    scan: IndexScan
    new_files: tuple[str | None, str | None] = (None, None)
    """Paths of the new offset and time index, if the thread wrote them."""
    aborted: tuple[AbortedTxn, ...] | None = None
    """The right content of the transaction index; None if it holds that."""
    is_compaction: bool = False
    """Whether it differs only by transactions whose data was compacted away."""


class IndexMender:
    """Finds out whether an index in doubt is wrong, and rebuilds it. One per log."""

    __slots__ = (
        "_aborted_sums",
        "_begun",
        "_durability",
        "_guard",
        "_snapshots",
        "_store",
        "_topic_partition",
        "damaged",
        "noted",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        durability: Durability,
        snapshots: SnapshotFiles,
        guard: DiskGuard,
        aborted_sums: AbortedSums,
    ) -> None:
        self._topic_partition = topic_partition
        self._store = store
        self._durability = durability
        self._snapshots = snapshots
        self._guard = guard
        self._aborted_sums = aborted_sums
        self._begun: set[int] = set()
        """Bases of segments whose repair waits or runs."""
        self.noted: Noted | None = None
        self.damaged: Callable[[IndexKind], None] = _nobody

    def answer(self, ask: Callable[[], Result]) -> Result:
        """Return the result of `ask`. Raises BeingRepaired for an index in doubt, and as `ask`."""
        while True:
            try:
                return ask()
            except IndexInDoubt as doubt:
                self.note(doubt)

    async def search(self, begin: Callable[[], Work[Result]]) -> Result:
        """`answer` for a search that may wait; after a repair here and now it begins anew."""
        while True:
            try:
                return await begin()
            except IndexInDoubt as doubt:
                self.note(doubt)

    def note(self, doubt: IndexInDoubt) -> None:
        """Start the repair. Returns if it was done here and now, else raises BeingRepaired."""
        base = doubt.base_offset
        if base not in self._begun:
            self._begun.add(base)
            if doubt.kind is not IndexKind.TRANSACTION:
                self.damaged(doubt.kind)
                _log.error("Damaged index, it is rebuilt from its log: %s", doubt)
            else:
                _log.info("Reading a log to know its aborted transactions: %s", doubt)
            if self.noted is not None:
                self.noted(doubt.fresh())
        if self.noted is None:
            with self._guard.writing():
                at_once(self.repair(doubt))
            return
        raise BeingRepaired(doubt.path)

    async def repair(self, doubt: IndexInDoubt) -> bool:
        """Read the segment of `doubt` through, and install the index if it was wrong.

        Returns False if the segment is gone, or the log out of service. Raises StorageError.
        """
        base = doubt.base_offset
        segment = self._store.segments.get(base)
        try:
            if segment is None or self._guard.offline is not None:
                return False
            await self._read_and_install(self._begin(segment, doubt.kind))
        finally:
            self._begun.discard(base)
        return True

    async def _read_and_install(self, repair: "_Repair") -> None:
        segment = repair.segment
        try:
            found = await call(repair.read)
            while self._stands(repair) and segment.size - repair.size > _GREW_BY:
                repair.size = segment.size
                found = await call(repair.read)
            if self._stands(repair):
                self._install(repair, found)
            else:
                repair.discard()
        except OSError as error:
            repair.discard()
            if self._stands(repair) and self._has_all_before(repair):
                self._guard.fail(error)

    def _begin(self, segment: LogSegment, kind: IndexKind) -> "_Repair":
        store = self._store
        before = store.segments.between(0, segment.base_offset)
        at_most = [offset for offset in self._snapshots.offsets if offset <= segment.base_offset]
        return _Repair(
            fs=store.fs,
            directory=store.directory,
            segment=segment,
            kind=kind,
            size=segment.size,
            sealed=segment is not store.segments.active,
            generation=store.generation,
            snapshots=tuple((offset, self._snapshots.path(offset)) for offset in at_most),
            is_compacted=store.config.compact,
            before=tuple((other.base_offset, other.size) for other in before)
            if kind is IndexKind.TRANSACTION
            else (),
            names=tuple(temporary_file(path, store.unique()) for path in segment.files.paths[1:3]),
        )

    def _stands(self, repair: "_Repair") -> bool:
        """Whether the segment that is read is still that of the log."""
        return (
            repair.generation == self._store.generation
            and self._store.segments.get(repair.segment.base_offset) is repair.segment
            and self._guard.offline is None
        )

    def _has_all_before(self, repair: "_Repair") -> bool:
        """Whether retention has left all segments that a repair may read beside its own."""
        return all(base in self._store.segments for base, _ in repair.before)

    def _install(self, repair: "_Repair", found: _Scanned) -> None:
        segment, scan = repair.segment, found.scan
        if segment.size > repair.size:
            scan.run(segment.file, segment.size)
            found = repair.compare(scan)
        if repair.kind is IndexKind.TRANSACTION:
            if found.aborted is not None:
                if not found.is_compaction:
                    self.damaged(repair.kind)
                    _log.error(
                        "Damaged index, it is rebuilt from its log: %s held other aborted "
                        "transactions than the %d that there are",
                        segment.aborted.index.path,
                        len(found.aborted),
                    )
                segment.aborted.rewrite(found.aborted)
            segment.aborted.trust(leaves_open=scan.leaves_open or not scan.whole)
            self._aborted_sums.learned += 1
        else:
            if segment is not self._store.segments.active:
                scan.add_time_entry()
            segment.indexes.install(scan, found.new_files)
        self._durability.note_change(segment)
        _log.info(
            "The %s index of %s, segment %d, is that of its log again",
            repair.kind,
            self._topic_partition,
            segment.base_offset,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class _Repair:
    """One repair: what a thread reads and writes."""

    fs: FileSystem
    directory: str
    segment: LogSegment
    """For the loop. `read` takes no more of it than its base offset, which never changes."""
    kind: IndexKind
    size: int
    sealed: bool
    generation: int
    snapshots: tuple[tuple[int, str], ...]
    is_compacted: bool
    before: tuple[tuple[int, int], ...]
    names: tuple[str, ...]
    path: str = ""
    txn_path: str = ""
    scan: IndexScan | None = None
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path = self.path or self.segment.files.path
        self.txn_path = self.txn_path or self.segment.files.txn_index_path
        self.scan = self.scan or self.segment.indexes.new_scan({})

    def read(self) -> _Scanned:
        """Read the segment up to `size`, from where the last call has ended. Raises OSError.

        In any thread.
        """
        scan = self.scan
        assert scan is not None
        if self.kind is IndexKind.TRANSACTION and not scan.position:
            scan.begin_with(self._open_before())
        file = self.fs.open(self.path, writable=False)
        scan.run(file, self.size)
        file.close()
        if self.kind is IndexKind.TRANSACTION:
            return self.compare(scan)
        if not self.sealed:
            return _Scanned(scan)
        scan.add_time_entry()
        for name, content in zip(self.names, (scan.offset_entries, scan.time_entries), strict=True):
            self._write(name, content)
        return _Scanned(scan, (self.names[0], self.names[1]))

    def _open_before(self) -> OpenTransactions:
        base = self.segment.base_offset
        return open_transactions(self.fs, self.directory, base, self.snapshots, self.before)

    def compare(self, scan: IndexScan) -> _Scanned:
        """Compare the transaction index with the batches that were read. Raises OSError."""
        if self.kind is not IndexKind.TRANSACTION:
            return _Scanned(scan)
        index = TransactionIndex(self.fs, self.txn_path, self.segment.base_offset)
        there = index.all_aborted()
        right = scan.aborted
        if not scan.whole:
            # Beyond the damage the log cannot be read, so the index keeps its entries there.
            right = [*right, *(txn for txn in there if txn.last_offset > scan.last_offset)]
        wanted = b"".join(txn.pack() for txn in right)
        if index.checksum == (len(wanted), crc32c(wanted)):
            return _Scanned(scan)
        return _Scanned(
            scan,
            aborted=tuple(right),
            is_compaction=self.is_compacted
            and _differ_by_compaction(there, right, scan.bare_aborts, self.segment.base_offset),
        )

    def _write(self, name: str, content: bytes | bytearray) -> None:
        self.written.append(name)
        file = self.fs.open(name, create=True)
        try:
            file.pwrite(content, 0)
            file.fsync()
        finally:
            file.close()

    def discard(self) -> None:
        """Remove the files that `read` has written; ignores disk errors."""
        for name in self.written:
            with suppress(OSError):
                self.fs.unlink(name, missing_ok=True)


def _differ_by_compaction(
    there: Iterable[AbortedTxn],
    right: Iterable[AbortedTxn],
    bare_aborts: Set[tuple[int, int]],
    base_offset: int,
) -> bool:
    """Whether compaction alone may explain that an index holds `there` instead of `right`.

    A transaction without data may be named or not; others are named from their first offset on,
    even if the data there is gone. Those that began before `base_offset`, the segment's base, may
    have lost data in earlier segments.
    """
    left = {(txn.producer_id, txn.last_offset): txn.first_offset for txn in there}
    for txn in right:
        first = left.pop((txn.producer_id, txn.last_offset), None)
        if first is None:
            if txn.first_offset >= base_offset:
                return False
        elif first > txn.first_offset >= base_offset:
            return False
    return left.keys() <= bare_aborts
