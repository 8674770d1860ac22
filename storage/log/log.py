"""One partition's log on one broker (Kafka's `UnifiedLog`): appends, reads, offsets.

Invariants between any two calls
  1. log start offset <= last stable offset <= high watermark <= log end offset; the recovery point
     is not above the log end offset.
  2. Offsets in the log rise strictly; a batch is visible as a whole or not at all (S-READ-7).
  3. The recovery point moves only after everything below it was synced (S-FL-2).
  4. Only the active segment is written to; there is always one.

Everything here is synchronous and belongs to one thread (the event loop); a call cannot be
interrupted, so it needs no lock. Work that may block runs elsewhere, on values:
`PendingAppend.write`, and the calls of `flush`, `settle`, `close` and `repair_index`
(`storage.waits`). While an append is pending, only reads, offset moves and flushes are allowed.

The log consists of parts, each with its own state. `Log` does what takes several parts; for all
else callers use the part itself:

    store, segments    SegmentStore, LogSegments: the files
    appender           Appender: validation and appends
    roller             Roller: when a segment is full, and the next one
    reader, times      LogReader, TimeLookups: reads by offset, lookups by time
    offsets            LogOffsets: start, end, watermarks
    durability         Durability: the recovery point, what is to be synced
    replacer           Replacer: compacted segments
    aborted_sums       AbortedSums: notes on transaction indexes
    producers          ProducerStateManager: sequences, transactions
    leader_epochs      LeaderEpochCache

    SegmentDeleter (retention), Truncator (an earlier end), IndexMender (damaged indexes) and
    DiskGuard (disk errors) work for these.

A disk error becomes a `StorageError` and is reported to the owner of the log directory (`connect`),
which takes it offline; the log then refuses everything (S-REC-11). `broker.replication`, the log
manager and the cleaner call this.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from config.topic_config import TopicConfig
from protocol.types import ZERO_UUID, TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import BeingRepaired, IndexInDoubt, IndexKind
from storage.log.aborted_sums import AbortedSums
from storage.log.appender import Appender
from storage.log.deleting import SegmentDeleter
from storage.log.durability import Durability
from storage.log.guard import DiskFailed, DiskGuard
from storage.log.mending import IndexMender
from storage.log.offsets import LogOffsets
from storage.log.reading import LogReader
from storage.log.replacing import Replacer
from storage.log.results import (
    Deleted,
    LogStatistics,
    RollReason,
    StartOffsetReason,
)
from storage.log.rolling import Roller
from storage.log.segment import LogSegment
from storage.log.segment_files import Openings
from storage.log.store import SegmentStore
from storage.log.time_lookups import TimeLookups
from storage.log.truncating import Truncator
from storage.producers.state import ProducerStateManager

Lowered = Callable[["Log"], None]
"""Called with (log) when its recovery point was lowered, before anything is cut off."""

Truncated = Callable[["Log", int], None]
"""Called with (log, log start of before) once the log was cut, even if its disk failed then."""

Rolled = Callable[["Log", int], None]
"""Called with (log, offset) after a roll: everything below the offset should be flushed soon."""


_PRODUCERS_IN_PASSING: Final = 500
"""The snapshot of at most so many producers is written in a few milliseconds."""
InDoubt = Callable[["Log", IndexInDoubt], None]
"""Called with (log, doubt) for an index that needs `repair_index`."""


class Log:
    """One partition's log, made of parts. Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = (
        "_deleter",
        "_guard",
        "_mender",
        "_truncator",
        "aborted_sums",
        "append_as_leader",
        "append_if_light",
        "appender",
        "config",
        "durability",
        "leader_epochs",
        "offsets",
        "producers",
        "read",
        "reader",
        "replacer",
        "roller",
        "segments",
        "store",
        "times",
        "topic_id",
        "topic_partition",
        "update_high_watermark",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        leader_epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        unsynced_from: int | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        """Open a log over files that the loader (`storage.recovery`) has made consistent.

        `unsynced_from`: the base of the first segment with unsynced files; None if all are synced.
        """
        tp = topic_partition
        self.topic_partition = tp
        self.topic_id = topic_id
        self.config = store.config
        self.segments = store.segments
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.store = store
        self._guard = guard = DiskGuard(store)
        self.offsets = offsets = LogOffsets(
            tp, store.segments, producers, leader_epochs, start=log_start_offset, end=log_end_offset
        )
        self.durability = durability = Durability(
            store,
            offsets,
            producers,
            leader_epochs,
            guard,
            recovery_point=recovery_point,
            unsynced_from=unsynced_from,
        )
        self.aborted_sums = AbortedSums(tp, store, offsets, durability)
        self._mender = mender = IndexMender(
            tp, store, durability, producers.snapshots, guard, self.aborted_sums
        )
        self.reader = reader = LogReader(store.segments, offsets, guard, mender)
        self.roller = roller = Roller(tp, store, offsets, producers, durability)
        self.appender = appender = Appender(
            tp, store, offsets, producers, leader_epochs, durability, roller, guard
        )
        self._deleter = deleter = SegmentDeleter(
            tp, store, offsets, producers, durability, reader, roller, guard
        )
        self._truncator = Truncator(store, offsets, producers, leader_epochs, durability, reader)
        self.replacer = Replacer(store, durability, deleter, guard)
        self.times = TimeLookups(store.segments, offsets, guard, mender, store.clock)
        # Every produce calls `append_if_light`: the part's own method saves a call.
        self.append_as_leader = appender.append_as_leader
        self.append_if_light = appender.append_if_light
        self.read = reader.read
        self.update_high_watermark = offsets.update_high_watermark

    def connect(
        self,
        *,
        failed: DiskFailed,
        rolled: Rolled,
        lowered: Lowered | None = None,
        truncated: Truncated | None = None,
        openings: Openings | None = None,
        in_doubt: InDoubt | None = None,
        damaged: Callable[[IndexKind], None] | None = None,
        flushed: Callable[[float], None] | None = None,
    ) -> None:
        """Set the callbacks of the log's owner; `openings` notes which segments have files open."""
        if flushed is not None:
            self.durability.flushed = flushed
        self.store.connect(openings)
        self._mender.noted = None if in_doubt is None else partial(in_doubt, self)
        if damaged is not None:
            self._mender.damaged = damaged
        self._guard.failed = failed
        self.roller.ended = partial(rolled, self)
        self._truncator.lowered = None if lowered is None else partial(lowered, self)
        self._truncator.truncated = None if truncated is None else partial(truncated, self)

    # Properties.

    @property
    def dir(self) -> str:
        """The partition directory."""
        return self.store.directory

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read; records below it count as deleted."""
        return self.offsets.start

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record to come."""
        return self.offsets.end

    @property
    def high_watermark(self) -> int:
        """Below it every in-sync replica has the records. Moved by the replication layer."""
        return self.offsets.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open (S-TXN-1)."""
        return self.offsets.last_stable

    @property
    def recovery_point(self) -> int:
        """Below it everything was synced (S-FL-2)."""
        return self.durability.recovery_point

    @property
    def size(self) -> int:
        """Bytes of all record files."""
        return self.segments.size

    def update_config(self, config: TopicConfig) -> None:
        """Use this configuration from now on. Open segments keep their index size and jitter."""
        self.config = config
        self.store.configure(config)
        self.roller.configure(config)
        self.appender.configure(config)

    def statistics(self) -> LogStatistics:
        """The gauges of this log."""
        return LogStatistics(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            size=self.size,
            segment_count=len(self.segments),
            recovery_point=self.recovery_point,
            last_flush_ms=self.durability.last_flush_ms,
            producer_count=self.producers.producer_count,
        )

    def maybe_increment_log_start_offset(self, offset: int, reason: StartOffsetReason) -> bool:
        """Raise the log start offset to `offset`; True when it moved (S-RET-6).

        Raises OffsetOutOfRange above the high watermark. The next retention run deletes segments.
        """
        return self.offsets.maybe_increment_log_start_offset(offset, reason)

    # Indexes.

    async def repair_index(self, doubt: IndexInDoubt) -> bool:
        """Rebuild the index of `doubt`, which `in_doubt` was called with; False if its segment is
        gone. Raises StorageError."""
        return await self._mender.repair(doubt)

    # Segments.

    def roll(self) -> LogSegment:
        """Start a new segment at the log end offset. Raises StorageError."""
        self.appender.expect_idle()
        with self._guard.writing():
            return self.roller.roll(self.log_end_offset, RollReason.REQUESTED)

    def truncate_to(self, offset: int) -> bool:
        """Drop all batches from the one that holds `offset` on; True when there were any.

        Raises ValueError for a negative offset, and CorruptBatch if damage hides the place: nothing
        is cut then. Raises StorageError.
        """
        if offset < 0:
            raise ValueError(f"Cannot truncate partition {self.topic_partition} to {offset}")
        self.appender.expect_idle()
        with self._guard.writing():
            return self._truncator.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the next record gets `offset`. Raises StorageError."""
        self.appender.expect_idle()
        start = offset if log_start_offset is None else log_start_offset
        with self._guard.writing():
            self._truncator.truncate_fully_and_start_at(offset, start)

    def delete_old_segments(self) -> list[Deleted]:
        """Apply retention (S-RET-2 to S-RET-5); returns the deleted segments with reasons.

        Deletes nothing while an append is pending or the log is out of service. Raises
        StorageError.
        """
        if not self.appender.is_idle or self._guard.offline is not None:
            return []
        try:
            return self._mender.answer(self._deleter.delete_old_segments)
        except BeingRepaired:
            return []  # the next run can read the segment's age from the rebuilt time index

    # Disk.

    async def flush(self, offset: int | None = None) -> None:
        """Sync everything below `offset` (all by default), move the recovery point (S-FL-2).

        Returns when that is done, even if the log was truncated or moved meanwhile, or when it is
        out of service. Raises StorageError.
        """
        await self.durability.flush(offset)

    async def settle(self) -> None:
        """`flush`, with a producer snapshot at the log end if there are few producers.

        With the snapshot, a start after a crash need not read the segment's batches to know the
        producers. Only for a log with no appends at the moment: a snapshot holds only the last
        batch of each producer, and a producer with several in flight may resend earlier ones. Only
        for few producers, because these snapshots are frequent and written here, on the loop.
        Raises StorageError.
        """
        if self._guard.offline is not None:
            return
        producers = self.producers
        if producers.producer_count <= _PRODUCERS_IN_PASSING:
            with self._guard.writing():
                producers.take_snapshot(sync=False)
                # Keep two: the recovery point on the disk may still be that of the older one.
                strays = [at for at in producers.snapshots.offsets if at not in self.segments]
                for offset in strays[:-2]:
                    producers.snapshots.delete(offset)
        await self.durability.flush()

    async def close(self) -> None:
        """Snapshot the producers at the end; trim, sync, close all files. Raises StorageError.

        Nobody may append any more.
        """
        if self._guard.offline is not None:
            return
        with self._guard.writing():
            self.producers.map_end_offset = self.log_end_offset
            self.producers.take_snapshot(sync=False)
            self.producers.snapshots.delete_strays(self.segments.base_offsets)
            for segment in self.segments:
                if segment.finish():
                    self.durability.note_change(segment)
        await self.durability.flush()
        with self._guard.writing():
            for segment in self.segments:
                segment.close()

    def let_go_of_files(self) -> None:
        """Close all files; the next append or read opens them again. Raises OSError."""
        for segment in self.segments:
            segment.let_go()

    def release(self) -> None:
        """Drop all files without writing: the directory is offline, or about to be removed."""
        self.reader.forget()
        for segment in self.segments:
            segment.release()

    def moved_to(self, directory: str) -> None:
        """The partition directory was renamed to `directory`."""
        self.reader.forget()
        self.store.moved_to(directory)
        self.producers.update_parent_dir(directory)
        self.leader_epochs.update_parent_dir(directory)

    def take_out_of_service(self) -> None:
        """The partition is deleted: refuse everything, let go of the files without writing."""
        self.take_offline(FileNotFoundError(f"{self.topic_partition} was deleted"))

    def take_offline(self, cause: OSError) -> None:
        """Refuse everything from now on: the log directory has failed."""
        self._guard.close(cause)
        self.release()
        # These hold this log: without them its memory is free with the last reference to it, and
        # not at a collection of all objects.
        self._mender.noted = _ignore
        self.roller.ended = None
        self._truncator.lowered = self._truncator.truncated = None

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, dir={self.dir}, end={self.log_end_offset})"

    def _check(self) -> None:
        """Check the four invariants of the module docstring, by reading everything."""
        self.offsets._check()
        self.durability._check()
        self.segments._check()
        self.producers._check()
        self.leader_epochs._check()
        for segment in self.segments:
            segment._check()
        active = self.segments.active
        assert active.read_end()[0] <= self.log_end_offset or active.size == 0
        assert self.segments.first.base_offset <= self.log_start_offset


def _ignore(_: object) -> None:
    """Do nothing."""
