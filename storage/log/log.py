"""One partition's log on one broker (Kafka's `UnifiedLog`): appends, reads, and the offsets that bound them.

What holds, always, between two calls
  1. log start offset <= last stable offset <= high watermark <= log end offset; the recovery point is
     not above the log end offset.
  2. Offsets in the log rise strictly; a batch is visible as a whole or not at all (S-READ-7).
  3. The recovery point moves only after everything below it was synced (S-FL-2).
  4. Only the active segment is written to; there is always one.

Everything here is synchronous and belongs to one thread (the event loop); a call cannot be interrupted, so
it needs no lock. Two things may run elsewhere: `PendingAppend.write` and `flush`. While an append is
pending, only reads and offset moves are allowed.

The log coordinates parts that it does not implement: `LeaderValidator` (what may be appended), `LogSegment`
(files), `ProducerStateManager` (who may append), `LeaderEpochCache`, `LogReader`, `retention`, `times`.

Disk trouble becomes a `StorageError` and is reported to the owner of the log directory (`LogParts.failed`),
which takes it offline; the log then refuses everything (S-REC-11). `broker.replication` and the log manager
call this.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL_BIT, LOG_OVERHEAD
from protocol.records.errors import RecordsError
from protocol.types import NO_LEADER_EPOCH, ZERO_UUID, TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import OffsetOutOfRange, StorageError
from storage.log import replay, retention, times
from storage.log.appending import PendingAppend, settled
from storage.log.following import FollowerBatches, UnexpectedAppendOffset
from storage.log.reading import LogReader, Place, nothing
from storage.log.results import (
    AppendInfo,
    AppendOrigin,
    Deleted,
    DeletionReason,
    FetchIsolation,
    LogStatistics,
    PendingDeletion,
    ReadInfo,
    RollReason,
    StartOffsetReason,
    TimestampOffset,
)
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.log.validation import (
    LATEST_PRODUCE,
    Bytes,
    LeaderValidator,
    RejectedRecords,
    bad_crc,
    refusal,
)
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)

Failed = Callable[[str, OSError], None]
"""Told (partition directory, cause) when the disk failed."""

Rolled = Callable[["Log", int], None]
"""Told (log, offset) when a segment ended: everything below the offset should be flushed soon."""


class Log:
    """See the module docstring. Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = (
        "_clock",
        "_dirty_from",
        "_failed",
        "_first_unstable",
        "_high_watermark",
        "_hw_place",
        "_latest_epoch",
        "_log_end_offset",
        "_offline",
        "_pending",
        "_reader",
        "_rolled",
        "_segment_ms",
        "_store",
        "_validator",
        "config",
        "last_flush_ms",
        "leader_epochs",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "topic_id",
        "topic_partition",
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
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        """Over parts that the loader (`storage.recovery`) has made consistent."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = store.segments
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        self.last_flush_ms = store.clock.wall_ms()
        self._store = store
        self._clock = store.clock
        self._reader = LogReader(store.segments)
        self._log_end_offset = log_end_offset
        self._high_watermark = log_start_offset
        self._hw_place: Place | None = None
        self._first_unstable: int | None = None
        self._dirty_from: int | None = None
        self._pending: PendingAppend | None = None
        self._offline: OSError | None = None
        self._failed: Failed | None = None
        self._rolled: Rolled | None = None
        self._epoch_changed()
        self.update_config(store.config)
        self._refresh_first_unstable()

    def connect(self, *, failed: Failed, rolled: Rolled) -> None:
        """Tell the log whom to tell."""
        self._failed = failed
        self._rolled = rolled

    # What it is.

    @property
    def dir(self) -> str:
        """The partition directory."""
        return self._store.directory

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record to come."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """Below it every in-sync replica has the records. Moved by the replication layer."""
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is open (S-TXN-1)."""
        unstable = self._first_unstable
        if unstable is not None and unstable < self._high_watermark:
            return unstable
        return self._high_watermark

    @property
    def size(self) -> int:
        """Bytes of all record files."""
        return self.segments.size

    @property
    def segment_count(self) -> int:
        """Segments, the active one included."""
        return len(self.segments)

    @property
    def first_segment_base(self) -> int:
        """Where the log would start if nobody had moved its start. Any thread may ask."""
        return self.segments.snapshot_from(0)[0].base_offset

    def update_config(self, config: TopicConfig) -> None:
        """From now on these rules hold. Open segments keep their index size and jitter."""
        self.config = config
        self._store.config = config
        # A compacted topic rolls early enough for its records to be cleaned in time (S-ROLL-2).
        self._segment_ms = (
            min(config.segment_ms, config.max_compaction_lag_ms)
            if config.compact
            else config.segment_ms
        )
        self._validator = LeaderValidator(config, self._clock, str(self.topic_partition))

    def statistics(self) -> LogStatistics:
        """The gauges of this log."""
        return LogStatistics(
            log_start_offset=self.log_start_offset,
            log_end_offset=self._log_end_offset,
            high_watermark=self._high_watermark,
            last_stable_offset=self.last_stable_offset,
            size=self.size,
            segment_count=self.segment_count,
            recovery_point=self.recovery_point,
            last_flush_ms=self.last_flush_ms,
            producer_count=len(self.producers.producers),
        )

    # Appending.

    def append_as_leader(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
    ) -> AppendInfo:
        """Validate one batch, give it offsets, write it (checklist B4.1). All or nothing.

        A writable `records` is patched in place. Raises KafkaError with the client's code: validation
        (`validation`), sequence and epoch errors (`storage.producers`), StorageError.
        """
        pending = self.begin_append(
            records, leader_epoch=leader_epoch, origin=origin, request_version=request_version
        )
        pending.write()
        return self.complete_append(pending)

    def begin_append(
        self,
        records: Bytes,
        *,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
    ) -> PendingAppend:
        """The first third of `append_as_leader`: everything but the write. Raises as it does.

        The order is Kafka's: analyse, assign, epoch, size, roll, producer state. After this and until
        `complete_append` only reads and offset moves are allowed.
        """
        self._expect_idle()
        first = self._log_end_offset
        prepared = self._validator.prepare(
            records,
            base_offset=first,
            leader_epoch=leader_epoch,
            origin=origin,
            request_version=request_version,
        )
        if prepared is None:
            info = AppendInfo(-1, -1, log_start_offset=self.log_start_offset)
            return settled(info, self.segments.active)
        header, data = prepared.header, prepared.data
        last = first + header.last_offset_delta
        try:
            if leader_epoch != self._latest_epoch:
                self._assign_epoch(leader_epoch, first)
            reason = self._make_room(len(data), first, last, header.max_timestamp)
        except OSError as error:
            self._fail(error)
        info = AppendInfo(
            first,
            last,
            header.max_timestamp,
            last,
            prepared.log_append_time,
            self.log_start_offset,
            leader_epoch,
            header.record_count,
            prepared.valid_bytes,
            False,
            reason,
        )
        segment = self.segments.active
        pending = PendingAppend(data, (header,), segment, info, check_crc=prepared.check_crc)
        if header.producer_id >= 0:
            marker = replay.marker_of(data, 0)[0] if header.attributes & CONTROL_BIT else None
            repeated = self.producers.analyze(header, origin, marker).duplicate_of
            if repeated is not None:
                # Answered as the first time (S-APP-10).
                info.duplicate = True
                info.first_offset, info.last_offset = repeated.first_offset, repeated.last_offset
                info.log_append_time = repeated.timestamp
                pending.settled = True
        self._pending = pending
        return pending

    def append_as_follower(self, records: Bytes) -> AppendInfo:
        """Append batches copied from the leader, offsets and epochs as they are (S-APP-9).

        Raises CORRUPT_MESSAGE, OffsetsOutOfOrder, UnexpectedAppendOffset, StorageError.
        """
        self._expect_idle()
        try:
            batches = FollowerBatches(records, str(self.topic_partition))
        except RecordsError as error:
            raise refusal(error) from error
        info = AppendInfo(-1, -1, log_start_offset=self.log_start_offset)
        if not batches.headers:
            return info
        first, last = batches.first_offset, batches.last_offset
        if first < self._log_end_offset:
            raise UnexpectedAppendOffset(
                str(self.topic_partition), first, last, self._log_end_offset
            )
        try:
            for header in batches.headers:
                if header.magic >= 2 and header.partition_leader_epoch > self._latest_epoch:
                    self._assign_epoch(header.partition_leader_epoch, header.base_offset)
            reason = self._make_room(len(batches.data), first, last, batches.max_timestamp)
        except OSError as error:
            self._fail(error)
        info = AppendInfo(
            first,
            last,
            batches.max_timestamp,
            batches.offset_of_max_timestamp,
            leader_epoch=batches.headers[-1].partition_leader_epoch,
            log_start_offset=self.log_start_offset,
            record_count=batches.record_count,
            valid_bytes=len(batches.data),
            rolled=reason,
        )
        pending = PendingAppend(batches.data, batches.headers, self.segments.active, info)
        self._pending = pending
        pending.write()
        return self.complete_append(pending)

    def complete_append(self, pending: PendingAppend) -> AppendInfo:
        """The last third: the batch counts now. Raises CORRUPT_MESSAGE, StorageError.

        The log end offset moves before the transaction index is written: should that fail, offsets
        still grow and the stable offset stays behind (S-TXN-3).
        """
        self._pending = None
        info = pending.info
        if pending.settled:
            return info
        if pending.error is not None:
            self._fail(pending.error)
        if pending.bad_crc:
            raise refusal(bad_crc(pending.headers[0], str(self.topic_partition)))
        segment = pending.segment
        try:
            for header in pending.headers:
                segment.note_batch(
                    header.batch_length + LOG_OVERHEAD,
                    header.base_offset + header.last_offset_delta,
                    header.max_timestamp,
                )
            end = info.last_offset + 1
            self._log_end_offset = end
            self._remember_producers(pending)
            self.producers.map_end_offset = end
            if end - self.recovery_point >= self.config.flush_messages:
                self.flush()
        except OSError as error:
            self._fail(error)
        return info

    def _make_room(self, size: int, first: int, last: int, max_timestamp: int) -> RollReason | None:
        """See to it that the active segment takes `size` bytes; says why it had to be rolled."""
        config = self.config
        if size > config.segment_bytes:
            raise RejectedRecords(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.topic_partition}, "
                f"which exceeds the maximum configured segment size of {config.segment_bytes}.",
            )
        reason = self.segments.active.roll_reason(
            size,
            max_timestamp,
            last,
            segment_bytes=config.segment_bytes,
            segment_ms=self._segment_ms,
            clock=self._clock,
        )
        if reason is not None:
            self._roll(first, reason)
        return reason

    def _assign_epoch(self, leader_epoch: int, first_offset: int) -> None:
        self.leader_epochs.assign(leader_epoch, first_offset)
        self._latest_epoch = leader_epoch

    def roll(self) -> LogSegment:
        """Start a new segment at the log end offset. Raises StorageError."""
        self._expect_idle()
        try:
            return self._roll(self._log_end_offset, RollReason.REQUESTED)
        except OSError as error:
            self._fail(error)

    def _roll(self, first_offset: int, reason: RollReason) -> LogSegment:
        """`first_offset` is that of the batch to come: a follower's may lie beyond the log end."""
        old = self.segments.active
        base = max(first_offset, self._log_end_offset)
        segment = self._store.roll(base)
        _log.debug(
            "Rolled %s at offset %d: %s (segment %d, %d bytes)",
            self.topic_partition,
            base,
            reason.value,
            old.base_offset,
            old.size,
        )
        self._changed(old)
        # A snapshot at the new base lets recovery start there (S-ROLL-4).
        self.producers.map_end_offset = base
        self.producers.take_snapshot()
        if self._high_watermark >= self._log_end_offset:
            self._hw_place = None
        if self._rolled is not None:
            self._rolled(self, base)
        return segment

    def _remember_producers(self, pending: PendingAppend) -> None:
        """Producer state, transaction index and first unstable offset after an append."""
        at, changed = 0, False
        for header in pending.headers:
            if header.producer_id >= 0:
                completed = replay.remember(self.producers, header, pending.data, at)
                if completed is not None:
                    replay.settle(self.producers, pending.segment, completed)
                changed = changed or header.is_transactional
            at += header.batch_length + LOG_OVERHEAD
        if changed:
            self._refresh_first_unstable()

    def _refresh_first_unstable(self) -> None:
        first = self.producers.first_unstable_offset
        self._first_unstable = None if first is None else max(first, self.log_start_offset)

    # Reading.

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> ReadInfo:
        """Records from the batch that holds `offset`, up to what `isolation` lets be seen (B4.3).

        At least one whole batch with `min_one_message`, else at most `max_bytes`. Empty where the
        reader has all it may see. Raises OffsetOutOfRange, StorageError, CORRUPT_MESSAGE.
        """
        end = self._log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise OffsetOutOfRange(
                offset,
                start=self.log_start_offset,
                high_watermark=self._high_watermark,
                end=end,
            )
        with_aborted = isolation is FetchIsolation.TXN_COMMITTED
        limit = self._limit(isolation)
        if offset >= limit:
            return nothing(offset, with_aborted=with_aborted)
        if self._offline is not None:
            raise StorageError(self.dir, self._offline)
        try:
            return self._reader.read(
                offset,
                max_bytes,
                limit,
                self._place_of(limit),
                min_one_message=min_one_message,
                with_aborted=with_aborted,
            )
        except OSError as error:
            self._fail(error)
        except RecordsError as error:
            raise refusal(error) from error

    def _limit(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self._high_watermark
        if isolation is FetchIsolation.TXN_COMMITTED:
            return self.last_stable_offset
        return self._log_end_offset

    def _place_of(self, limit: int) -> Place:
        """Where a reader whose limit is this offset has to stop (S-READ-7)."""
        if limit == self._log_end_offset:
            active = self.segments.active
            return active, active.size
        if limit == self._high_watermark and self._hw_place is not None:
            return self._hw_place
        place = self._reader.locate(limit)
        if place is None:
            active = self.segments.active
            place = active, active.size
        if limit == self._high_watermark:
            self._hw_place = place
        return place

    def offset_for_timestamp(
        self, timestamp: int, isolation: FetchIsolation = FetchIsolation.LOG_END
    ) -> TimestampOffset | None:
        """The first record dated `timestamp` or later that `isolation` lets be seen (S-TS-2).

        Raises StorageError, CORRUPT_MESSAGE.
        """
        with self._reading():
            return times.first_record_from(
                self.segments, timestamp, self.log_start_offset, self._limit(isolation)
            )

    def max_timestamp(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp (-3); None when no record has one (S-TS-1)."""
        with self._reading():
            return times.latest_record(self.segments)

    def offsets_before(self, timestamp: int, most: int) -> list[int]:
        """Bases of segments last written at or before `timestamp`, newest first (ListOffsets v0, S-TS-5).

        -1 stands for now, the log end included; -2 for the log start.
        """
        with self._reading():
            return times.segments_before(
                list(self.segments), timestamp, most, self.log_start_offset, self._high_watermark
            )

    # Offsets that others move.

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, kept within log start and log end; True when it changed."""
        end = self._log_end_offset
        if offset >= end:
            offset = end
            active = self.segments.active
            self._hw_place = (active, active.size)
        else:
            offset = max(offset, self.log_start_offset)
            if offset != self._high_watermark:
                self._hw_place = None
        if offset == self._high_watermark:
            return False
        self._high_watermark = offset
        if self._first_unstable is not None:
            self.producers.on_high_watermark_updated(offset)
            self._refresh_first_unstable()
        return True

    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """As `update_high_watermark`, but never back. Raises ValueError beyond the log end."""
        if offset > self._log_end_offset:
            raise ValueError(
                f"High watermark {offset} of {self.topic_partition} would exceed the log end offset "
                f"{self._log_end_offset}"
            )
        return offset > self._high_watermark and self.update_high_watermark(offset)

    def maybe_increment_log_start_offset(self, offset: int, reason: StartOffsetReason) -> bool:
        """Records below `offset` are gone for readers; True when that is news (S-RET-6).

        Raises OffsetOutOfRange above the high watermark, StorageError. Segments follow at the next
        retention run.
        """
        if offset > self._high_watermark:
            raise OffsetOutOfRange(
                offset,
                start=self.log_start_offset,
                high_watermark=self._high_watermark,
                end=self._log_end_offset,
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        _log.info(
            "Incremented log start offset of %s to %d due to %s",
            self.topic_partition,
            offset,
            reason.value,
        )
        with self._writing():
            self.leader_epochs.truncate_from_start(offset)
            self.producers.on_log_start_offset_incremented(offset)
        self._refresh_first_unstable()
        return True

    # Shrinking.

    def truncate_to(self, offset: int) -> bool:
        """Drop all batches from the one that holds `offset` on; True when there were any.

        Raises ValueError for a negative offset, StorageError.
        """
        if offset < 0:
            raise ValueError(f"Cannot truncate partition {self.topic_partition} to {offset}")
        self._expect_idle()
        with self._writing():
            if offset >= self._log_end_offset:
                # A leader that was never heard may have left an epoch without records.
                self.leader_epochs.truncate_from_end(self._log_end_offset)
                self._epoch_changed()
                return False
            if self.segments.first.base_offset > offset:
                self.truncate_fully_and_start_at(offset)
                return True
            self._forget_deleted(self._store.truncate_to(offset))
            self.leader_epochs.truncate_from_end(offset)
            self._shrunk_to(offset, min(offset, self.log_start_offset))
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the next record gets `offset`. Raises StorageError."""
        self._expect_idle()
        with self._writing():
            self._forget_deleted(self._store.restart_at(offset))
            self.leader_epochs.clear()
            self.producers.truncate_fully_and_start_at(offset)
            self._shrunk_to(offset, offset if log_start_offset is None else log_start_offset)
            self.update_high_watermark(offset)

    def _shrunk_to(self, end_offset: int, log_start_offset: int) -> None:
        self._log_end_offset = end_offset
        self.log_start_offset = log_start_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self._changed(self.segments.active)
        self._reader.forget()
        self._hw_place = None
        self._epoch_changed()
        replay.rebuild(
            self.producers, self.segments, log_start_offset, end_offset, self._clock.wall_ms()
        )
        if self._high_watermark >= end_offset:
            self.update_high_watermark(end_offset)
        self._refresh_first_unstable()

    def delete_old_segments(self) -> list[Deleted]:
        """Apply retention (checklist B4.5): what went, and why. Raises StorageError."""
        if self._pending is not None:
            return []
        gone: list[Deleted] = []
        config = self.config
        with self._writing():
            gone += self._delete(
                retention.below_start(self.log_start_offset), DeletionReason.LOG_START_OFFSET
            )
            if not config.delete:
                return gone
            if 0 <= config.retention_bytes <= self.size:
                gone += self._delete(
                    retention.beyond_size(config.retention_bytes, self.size),
                    DeletionReason.RETENTION_SIZE,
                )
            if config.retention_ms >= 0:
                gone += self._delete(
                    retention.older_than(config.retention_ms, self._clock.wall_ms()),
                    DeletionReason.RETENTION_TIME,
                )
        return gone

    def _delete(self, expired: retention.Expired, reason: DeletionReason) -> list[Deleted]:
        doomed = retention.deletable(
            self.segments,
            expired,
            high_watermark=self._high_watermark,
            log_end_offset=self._log_end_offset,
        )
        if not doomed:
            return []
        if len(doomed) == len(self.segments):
            # There must always be one.
            self._roll(self._log_end_offset, RollReason.REQUESTED)
        following = self.segments.higher(doomed[-1].base_offset)
        assert following is not None
        self.maybe_increment_log_start_offset(
            following.base_offset, StartOffsetReason.SEGMENT_DELETION
        )
        gone = self._store.delete(doomed, reason)
        for one in gone:
            _log.info(
                "Deleted segment %d (%d bytes) of %s due to %s",
                one.base_offset,
                one.size,
                self.topic_partition,
                reason.value,
            )
        self._forget_deleted(gone)
        return gone

    def _forget_deleted(self, gone: list[Deleted]) -> None:
        """A segment's producer snapshot goes with it."""
        due = self._clock.wall_ms() + self.config.file_delete_delay_ms
        for one in gone:
            path = self.producers.mark_snapshot_deleted(one.base_offset)
            if path is not None:
                self._store.pend(path, due)
        self._reader.forget()

    def take_pending_deletions(self) -> list[PendingDeletion]:
        """Renamed files to be unlinked when due; the caller is responsible from now on."""
        return self._store.take_pending()

    # Disk.

    def flush(self, offset: int | None = None) -> None:
        """Sync everything below `offset` (all by default) and move the recovery point (S-FL-2).

        May run in a thread. Raises StorageError.
        """
        end = self._log_end_offset if offset is None else offset
        start, dirty = self.recovery_point, self._dirty_from
        self._dirty_from = None
        if dirty is None:
            if end <= start:
                return
            dirty = start
        try:
            # A segment that was cut may be empty now and start at the end.
            self._store.flush(min(start, dirty), max(end, dirty + 1))
            if offset is not None:
                self.producers.flush_snapshot(offset)
        except OSError as error:
            self._fail(error)
        # Truncated meanwhile: nothing above the end can be called synced.
        self.recovery_point = max(self.recovery_point, min(end, self._log_end_offset))
        self.last_flush_ms = self._clock.wall_ms()

    def close(self) -> None:
        """Write a producer snapshot at the end, trim and close all files. Raises StorageError."""
        with self._writing():
            self.producers.map_end_offset = self._log_end_offset
            self.producers.take_snapshot()
            for segment in self.segments:
                segment.close()

    def release(self) -> None:
        """Drop all files without writing: the directory is offline, or about to be removed."""
        self._reader.forget()
        for segment in self.segments:
            segment.release()

    def moved_to(self, directory: str) -> None:
        """The partition directory was renamed to `directory`."""
        self._reader.forget()
        self._hw_place = None
        self._store.moved_to(directory)
        self.producers.update_parent_dir(directory)
        self.leader_epochs.update_parent_dir(directory)

    def take_out_of_service(self) -> None:
        """The partition is deleted: refuse everything, let go of the files without writing."""
        self.take_offline(FileNotFoundError(f"{self.topic_partition} was deleted"))

    def take_offline(self, cause: OSError) -> None:
        """Refuse everything from now on: the log directory has failed."""
        self._offline = cause
        self.release()

    def _changed(self, segment: LogSegment) -> None:
        """Files below the recovery point were changed: the next flush has to start there."""
        base = segment.base_offset
        self._dirty_from = base if self._dirty_from is None else min(base, self._dirty_from)

    def _epoch_changed(self) -> None:
        latest = self.leader_epochs.latest_epoch
        self._latest_epoch = NO_LEADER_EPOCH if latest is None else latest

    def _expect_idle(self) -> None:
        if self._offline is not None:
            raise StorageError(self.dir, self._offline)
        if self._pending is not None:
            raise RuntimeError(f"{self.topic_partition}: an append is under way")

    def _fail(self, error: OSError) -> NoReturn:
        if self._failed is not None:
            self._failed(self.dir, error)
        raise StorageError(self.dir, error) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._fail(error)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        if self._offline is not None:
            raise StorageError(self.dir, self._offline)
        try:
            yield
        except OSError as error:
            self._fail(error)
        except RecordsError as error:
            raise refusal(error) from error

    def __repr__(self) -> str:
        return f"Log({self.topic_partition}, dir={self.dir}, end={self._log_end_offset})"

    def _check(self) -> None:
        """The four promises of the module docstring, by reading everything."""
        assert self.log_start_offset <= self.last_stable_offset <= self._high_watermark
        assert self._high_watermark <= self._log_end_offset
        assert self.recovery_point <= self._log_end_offset
        self.segments._check()
        self.producers._check()
        for segment in self.segments:
            segment._check()
        active = self.segments.active
        assert active.read_end()[0] <= self._log_end_offset or active.size == 0
        assert self.segments.first.base_offset <= self.log_start_offset
        if self._hw_place is not None:
            segment, position = self._hw_place
            assert self.segments.get(segment.base_offset) is segment
            assert position <= segment.size
