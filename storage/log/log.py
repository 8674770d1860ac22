"""One partition's log on one broker (Kafka's `UnifiedLog`): appends, reads, offsets.

What holds between any two calls
  1. log start offset <= last stable offset <= high watermark <= log end offset; the recovery point
     is not above the log end offset.
  2. Offsets in the log rise strictly; a batch is visible as a whole or not at all (S-READ-7).
  3. The recovery point moves only after everything below it was synced (S-FL-2).
  4. Only the active segment is written to; there is always one.

Everything here is synchronous and belongs to one thread (the event loop); a call cannot be
interrupted, so it needs no lock. What may block runs elsewhere, on values: `PendingAppend.write`,
and what `flush`, `settle`, `close` and `repair_index` call (`storage.waits`). While an append is
pending, only reads, offset moves and flushes are allowed.

The log consists of parts, each with its own state, and delegates to them:

    SegmentStore, LogSegments    the files                 LogOffsets      start, end, watermarks
    Appender                     validation and appends    LogReader       reads by offset
    Roller                       a new segment             Durability      marks, flushes
    SegmentDeleter               retention                 Truncator       an earlier end
    Replacer                     compacted segments        DiskGuard       disk errors
    ProducerStateManager         sequences, transactions   LeaderEpochCache
    IndexMender                  damaged indexes           AbortedSums     notes of aborted ones

A disk error becomes a `StorageError` and is reported to the owner of the log directory (`connect`),
which takes it offline; the log then refuses everything (S-REC-11). `broker.replication`, the log
manager and the cleaner call this.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from config.topic_config import TopicConfig
from protocol.types import ZERO_UUID, TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import BeingRepaired, IndexInDoubt, IndexKind
from storage.filesystem import FileSystem
from storage.log import times
from storage.log.aborted_sums import AbortedSums
from storage.log.appender import Appender
from storage.log.appending import PendingAppend
from storage.log.deleting import SegmentDeleter
from storage.log.durability import Durability
from storage.log.following import FollowerBatches
from storage.log.guard import DiskGuard, Failed
from storage.log.looking import Look, look_here
from storage.log.mending import IndexMender
from storage.log.offsets import LogOffsets
from storage.log.reading import LogReader
from storage.log.replacing import Replacer
from storage.log.results import (
    AppendInfo,
    Deleted,
    FetchIsolation,
    LogStatistics,
    PendingDeletion,
    RollReason,
    StartOffsetReason,
    TimestampOffset,
)
from storage.log.rolling import Roller
from storage.log.segment import LogSegment, Openings
from storage.log.store import SegmentStore
from storage.log.truncating import Truncator
from storage.log.validation import Bytes
from storage.producers.state import ProducerStateManager

Lowered = Callable[["Log"], None]
"""Called with (log) when its recovery point was lowered, before anything is cut off."""

Rolled = Callable[["Log", int], None]
"""Called with (log, offset) after a roll: everything below the offset should be flushed soon."""


_PRODUCERS_IN_PASSING: Final = 500
"""The snapshot of at most so many producers is written in a few milliseconds."""
InDoubt = Callable[["Log", IndexInDoubt], None]
"""Called with (log, doubt) for an index that needs `repair_index`."""


class Log:
    """One partition's log, made of parts. Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = (
        "_aborted_sums",
        "_appender",
        "_deleter",
        "_durability",
        "_guard",
        "_mender",
        "_offsets",
        "_reader",
        "_replacer",
        "_roller",
        "_store",
        "_truncator",
        "append_as_leader",
        "append_if_light",
        "begin_append",
        "complete_append",
        "config",
        "end_base",
        "leader_epochs",
        "producers",
        "read",
        "segments",
        "topic_id",
        "topic_partition",
        "update_high_watermark",
        "visible_end",
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
        self._store = store
        self._guard = guard = DiskGuard(store)
        self._offsets = offsets = LogOffsets(
            tp, store.segments, producers, leader_epochs, start=log_start_offset, end=log_end_offset
        )
        self._durability = durability = Durability(
            store,
            offsets,
            producers,
            leader_epochs,
            guard,
            recovery_point=recovery_point,
            unsynced_from=unsynced_from,
        )
        self._aborted_sums = AbortedSums(tp, store, offsets, durability)
        self._mender = mender = IndexMender(
            tp, store, durability, producers.snapshots, guard, self._aborted_sums
        )
        self._reader = reader = LogReader(store.segments, offsets, guard, mender)
        self._roller = roller = Roller(tp, store, offsets, producers, durability)
        self._appender = appender = Appender(
            tp, store, offsets, producers, leader_epochs, durability, roller, guard
        )
        self._deleter = deleter = SegmentDeleter(
            tp, store, offsets, producers, durability, reader, roller, guard
        )
        self._truncator = Truncator(store, offsets, producers, leader_epochs, durability, reader)
        self._replacer = Replacer(store, durability, deleter)
        # Methods that every request calls are those of the parts, which saves a call.
        self.append_as_leader = appender.append_as_leader
        self.append_if_light = appender.append_if_light
        self.begin_append = appender.begin_append
        self.complete_append = appender.complete_append
        self.read = reader.read
        self.end_base = reader.end_base
        self.update_high_watermark = offsets.update_high_watermark
        self.visible_end = offsets.visible_end

    def connect(
        self,
        *,
        failed: Failed,
        rolled: Rolled,
        lowered: Lowered | None = None,
        openings: Openings | None = None,
        in_doubt: InDoubt | None = None,
        damaged: Callable[[IndexKind], None] | None = None,
        flushed: Callable[[float], None] | None = None,
    ) -> None:
        """Set the callbacks of the log's owner; `openings` notes which segments have files open."""
        if flushed is not None:
            self._durability.flushed = flushed
        self._store.connect(openings)
        self._mender.noted = None if in_doubt is None else partial(in_doubt, self)
        if damaged is not None:
            self._mender.damaged = damaged
        self._guard.failed = failed
        self._roller.ended = partial(rolled, self)
        self._truncator.lowered = None if lowered is None else partial(lowered, self)

    # Properties.

    @property
    def dir(self) -> str:
        """The partition directory."""
        return self._store.directory

    @property
    def file_system(self) -> FileSystem:
        """The file system that holds its files."""
        return self._store.fs

    @property
    def generation(self) -> int:
        """Changes when segments are cut or replaced, so jobs compare it: see `SegmentStore`."""
        return self._store.generation

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read; records below it count as deleted."""
        return self._offsets.start

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record to come."""
        return self._offsets.end

    @property
    def high_watermark(self) -> int:
        """Below it every in-sync replica has the records. Moved by the replication layer."""
        return self._offsets.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open (S-TXN-1)."""
        return self._offsets.last_stable

    @property
    def recovery_point(self) -> int:
        """Below it everything was synced (S-FL-2)."""
        return self._durability.recovery_point

    @property
    def last_flush_ms(self) -> int:
        """Wall-clock milliseconds of the last complete flush, at first of opening the log."""
        return self._durability.last_flush_ms

    @property
    def names_are_synced(self) -> bool:
        """Whether deleted segments stay deleted after a crash."""
        return self._durability.names_are_synced

    @property
    def size(self) -> int:
        """Bytes of all record files."""
        return self.segments.size

    @property
    def segment_count(self) -> int:
        """How many segments there are, the active one included."""
        return len(self.segments)

    @property
    def first_segment_base(self) -> int:
        """The lowest base offset of a segment; at most the log start offset."""
        return self.segments.first.base_offset

    def update_config(self, config: TopicConfig) -> None:
        """Use this configuration from now on. Open segments keep their index size and jitter."""
        self.config = config
        self._store.config = config
        self._appender.configure(config)

    def statistics(self) -> LogStatistics:
        """The gauges of this log."""
        return LogStatistics(
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
            last_stable_offset=self.last_stable_offset,
            size=self.size,
            segment_count=self.segment_count,
            recovery_point=self.recovery_point,
            last_flush_ms=self.last_flush_ms,
            producer_count=self.producers.producer_count,
        )

    # Moving offsets, appending as a follower.

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """As `update_high_watermark`, but never back. Raises ValueError beyond the log end."""
        return self._offsets.maybe_increment_high_watermark(offset)

    def maybe_increment_log_start_offset(self, offset: int, reason: StartOffsetReason) -> bool:
        """Raise the log start offset to `offset`; True when it moved (S-RET-6).

        Raises OffsetOutOfRange above the high watermark. The next retention run deletes segments.
        """
        return self._offsets.maybe_increment_log_start_offset(offset, reason)

    def append_as_follower(self, records: Bytes) -> AppendInfo:
        """Append batches copied from the leader, offsets and epochs as they are (S-APP-9).

        Raises CORRUPT_MESSAGE, OffsetsOutOfOrder, UnexpectedAppendOffset, StorageError.
        """
        return self._appender.append_as_follower(records)

    def begin_append_as_follower(self, batches: FollowerBatches) -> PendingAppend:
        """The first step of `append_as_follower`, for batches that were checked elsewhere.

        Raises UnexpectedAppendOffset, RECORD_LIST_TOO_LARGE, StorageError.
        """
        return self._appender.begin_append_as_follower(batches)

    # Reading by time.

    async def search_timestamp(
        self,
        timestamp: int,
        isolation: FetchIsolation = FetchIsolation.LOG_END,
        look: Look = look_here,
    ) -> TimestampOffset | None:
        """The first record visible at `isolation` with `timestamp` or a later one (S-TS-2).

        `look` opens batches that are not small. Raises StorageError, CORRUPT_MESSAGE,
        BeingRepaired, and what `look` raises.
        """
        with self._guard.reading():
            return await self._mender.search(
                lambda: times.first_record_from(
                    self.segments,
                    timestamp,
                    self.log_start_offset,
                    self._offsets.visible_end(isolation),
                    look,
                )
            )

    async def search_max_timestamp(self, look: Look = look_here) -> TimestampOffset | None:
        """The first record with the greatest timestamp (-3) (S-TS-1), likewise."""
        with self._guard.reading():
            return await self._mender.search(lambda: times.latest_record(self.segments, look))

    def offsets_before(self, timestamp: int, most: int) -> list[int]:
        """Bases of segments last written by `timestamp`, newest first (ListOffsets v0, S-TS-5).

        -1 stands for now, the log end included; -2 for the log start.
        """
        with self._guard.reading():
            return times.segments_before(
                list(self.segments), timestamp, most, self.log_start_offset, self.high_watermark
            )

    def largest_timestamp_of(self, segment: LogSegment) -> int:
        """`LogSegment.largest_timestamp`; may open files.

        Raises StorageError, CORRUPT_MESSAGE, BeingRepaired.
        """
        with self._guard.reading():
            return self._mender.answer(segment.largest_timestamp)

    def first_timestamp_of(self, segment: LogSegment) -> int:
        """`LogSegment.read_first_timestamp`, likewise."""
        with self._guard.reading():
            return segment.read_first_timestamp()

    async def repair_index(self, doubt: IndexInDoubt) -> bool:
        """Rebuild the index of `doubt`, which `in_doubt` was called with; False if its segment is
        gone. Raises StorageError."""
        return await self._mender.repair(doubt)

    # Segments.

    def roll(self) -> LogSegment:
        """Start a new segment at the log end offset. Raises StorageError."""
        self._appender.expect_idle()
        with self._guard.writing():
            return self._roller.roll(self.log_end_offset, RollReason.REQUESTED)

    def truncate_to(self, offset: int) -> bool:
        """Drop all batches from the one that holds `offset` on; True when there were any.

        Raises ValueError for a negative offset, StorageError.
        """
        if offset < 0:
            raise ValueError(f"Cannot truncate partition {self.topic_partition} to {offset}")
        self._appender.expect_idle()
        with self._guard.writing():
            return self._truncator.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the next record gets `offset`. Raises StorageError."""
        self._appender.expect_idle()
        start = offset if log_start_offset is None else log_start_offset
        with self._guard.writing():
            self._truncator.truncate_fully_and_start_at(offset, start)

    def delete_old_segments(self) -> list[Deleted]:
        """Apply retention (S-RET-2 to S-RET-5); returns the deleted segments with reasons.

        Deletes nothing while an append is pending or the log is out of service. Raises
        StorageError.
        """
        if not self._appender.is_idle or self._guard.offline is not None:
            return []
        try:
            return self._mender.answer(self._deleter.delete_old_segments)
        except BeingRepaired:
            return []  # the next run can read the segment's age from the rebuilt time index

    def packed_aborted(self, end: int) -> bytes:
        """Entries of the transaction indexes: all aborted transactions with data below `end`.

        As bytes, because there may be millions; see `LogReader.packed_aborted`. Raises
        BeingRepaired, StorageError.
        """
        with self._guard.reading():
            return self._mender.answer(lambda: self._reader.packed_aborted(end))

    def open_cleaned(self, base_offset: int, *, size: int | None = None) -> LogSegment:
        """A segment over `.cleaned` files, for `replace_segments`. Raises StorageError."""
        with self._guard.writing():
            return self._store.open_cleaned(base_offset, size=size)

    def replace_segments(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, generation: int
    ) -> list[Deleted]:
        """Replace `old` by `new`, which a job has written as `.cleaned` files and synced.

        `generation` is the log's at the time `old` was read. Returns the segments taken out. Raises
        StaleGeneration when the segments have changed since, ValueError for the active segment or
        ranges that do not fit, StorageError.
        """
        self._guard.check()
        with self._guard.writing():
            return self._replacer.replace_segments(new, old, generation=generation)

    def take_pending_deletions(self) -> list[PendingDeletion]:
        """Hand over the renamed files; from now on the caller unlinks them when due."""
        return self._store.take_pending()

    # Disk.

    async def flush(self, offset: int | None = None) -> None:
        """Sync everything below `offset` (all by default), move the recovery point (S-FL-2).

        Returns when that is done, also if the log was truncated or moved meanwhile, or when it is
        out of service. Raises StorageError.
        """
        await self._durability.flush(offset)

    def lower_recovery_point(self, offset: int) -> bool:
        """Lower the recovery point to `offset` before a truncation; True when it moved."""
        before = self.recovery_point
        self._durability.cut_to(offset)
        return self.recovery_point < before

    @property
    def written_down(self) -> tuple[int, int]:
        """Changes whenever the recovery point or `aborted_line` does."""
        return self._durability.recovery_point, self._aborted_sums.learned

    @property
    def aborted_line(self) -> str:
        """The log's line for `storage.aborted_checkpoint`."""
        return self._aborted_sums.line(self.topic_id)

    @property
    def is_synced(self) -> bool:
        """Whether a flush would find nothing to do."""
        return self.recovery_point >= self.log_end_offset and self.names_are_synced

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
        await self._durability.flush()

    async def close(self) -> None:
        """Snapshot the producers at the end; trim, sync, close all files. Raises StorageError.

        Nobody may append any more.
        """
        if self._guard.offline is not None:
            return
        with self._guard.writing():
            self.producers.map_end_offset = self.log_end_offset
            self.producers.take_snapshot(sync=False)
            self.producers.remove_stray_snapshots(self.segments.base_offsets)
            for segment in self.segments:
                if segment.finish():
                    self._durability.note_change(segment)
        await self._durability.flush()
        with self._guard.writing():
            for segment in self.segments:
                segment.close()

    def let_go_of_files(self) -> None:
        """Close all files; the next append or read opens them again. Raises OSError."""
        for segment in self.segments:
            segment.let_go()

    def release(self) -> None:
        """Drop all files without writing: the directory is offline, or about to be removed."""
        self._reader.forget()
        for segment in self.segments:
            segment.release()

    def moved_to(self, directory: str) -> None:
        """The partition directory was renamed to `directory`."""
        self._reader.forget()
        self._store.moved_to(directory)
        self.producers.update_parent_dir(directory)
        self.leader_epochs.update_parent_dir(directory)

    def take_out_of_service(self) -> None:
        """The partition is deleted: refuse everything, let go of the files without writing."""
        self.take_offline(FileNotFoundError(f"{self.topic_partition} was deleted"))

    def take_offline(self, cause: OSError) -> None:
        """Refuse everything from now on: the log directory has failed."""
        self._guard.close(cause)
        self.release()

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, dir={self.dir}, end={self.log_end_offset})"

    def _check(self) -> None:
        """The four promises of the module docstring, by reading everything."""
        self._offsets._check()
        self._durability._check()
        self.segments._check()
        self.producers._check()
        self.leader_epochs._check()
        for segment in self.segments:
            segment._check()
        active = self.segments.active
        assert active.read_end()[0] <= self.log_end_offset or active.size == 0
        assert self.segments.first.base_offset <= self.log_start_offset
