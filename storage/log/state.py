"""What a log is between two calls: its offsets, its parts, and how it meets the disk.

`Log` (in `storage.log.log`, where the whole is explained) is built in three layers, so that each
can be read alone: this state, `ShrinkingLog` (rolling, truncation, retention) and `Log` itself
(appending and reading). Nobody else derives from them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NoReturn

from config.topic_config import TopicConfig
from protocol.records.errors import RecordsError
from protocol.types import NO_LEADER_EPOCH, ZERO_UUID, TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import OffsetOutOfRange, StorageError
from storage.log.appending import PendingAppend
from storage.log.reading import LogReader, Place
from storage.log.results import (
    LogStatistics,
    StartOffsetReason,
)
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.log.validation import (
    LeaderValidator,
    refusal,
)
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)

Failed = Callable[[str, OSError], None]
"""Told (partition directory, cause) when the disk failed."""

Rolling = Callable[["LogState"], None]
"""Told (log) before a segment ends."""

Rolled = Callable[["LogState", int], None]
"""Told (log, offset) when a segment ended: everything below the offset should be flushed soon."""


class LogState:
    """Offsets are absolute, sizes bytes, times milliseconds."""

    __slots__ = (
        "_clock",
        "_dirty_from",
        "_failed",
        "_first_unstable",
        "_flushing",
        "_high_watermark",
        "_hw_place",
        "_latest_epoch",
        "_log_end_offset",
        "_offline",
        "_pending",
        "_reader",
        "_rolled",
        "_rolling",
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
        unsynced_from: int | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        """Over parts that the loader (`storage.recovery`) has made consistent.

        `unsynced_from`: the base of the first segment that may not be on the disk as it is.
        """
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
        self._dirty_from: int | None = unsynced_from
        # Several threads may flush; the recovery point must not pass what a slower one syncs.
        self._flushing = Lock()
        self._pending: PendingAppend | None = None
        self._offline: OSError | None = None
        self._failed: Failed | None = None
        self._rolled: Rolled | None = None
        self._rolling: Rolling | None = None
        self._epoch_changed()
        self.update_config(store.config)
        self._refresh_first_unstable()

    def connect(self, *, failed: Failed, rolled: Rolled, rolling: Rolling | None = None) -> None:
        """Tell the log whom to tell."""
        self._failed = failed
        self._rolled = rolled
        self._rolling = rolling

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

    @property
    def names_are_synced(self) -> bool:
        """Whether segments that were deleted stay so after a crash. Any thread may ask."""
        return self._dirty_from is None and not self._flushing.locked()

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
                f"High watermark {offset} of {self.topic_partition} would exceed the log end "
                f"offset {self._log_end_offset}"
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

    def _refresh_first_unstable(self) -> None:
        first = self.producers.first_unstable_offset
        self._first_unstable = None if first is None else max(first, self.log_start_offset)

    # Disk.

    def flush(self, offset: int | None = None) -> None:
        """Sync everything below `offset` (all by default) and move the recovery point (S-FL-2).

        May run in a thread. Raises StorageError.
        """
        with self._flushing:
            end = self._log_end_offset if offset is None else offset
            start, dirty = self.recovery_point, self._dirty_from
            self._dirty_from = None
            if dirty is None and end <= start:
                return
            try:
                # A segment that was cut may be empty now and start at the end.
                first = start if dirty is None else min(start, dirty)
                self._store.flush(first, end if dirty is None else max(end, dirty + 1))
                self.producers.flush_snapshots(end)
                if dirty is not None or not self._store.dir_is_synced:
                    self._store.flush_names()
                # After the names: a segment that comes back must find its epochs.
                self.leader_epochs.flush()
            except OSError as error:
                if self._offline is not None:
                    return  # deleted, moved away or given up meanwhile: no fault of the disk
                self._fail(error)
            # Truncated meanwhile: nothing above the end can be called synced.
            self.recovery_point = max(self.recovery_point, min(end, self._log_end_offset))
            self.last_flush_ms = self._clock.wall_ms()

    def close(self) -> None:
        """Snapshot the producers at the end; trim, sync, close all files. Raises StorageError."""
        with self._writing():
            self.producers.map_end_offset = self._log_end_offset
            self.producers.take_snapshot()
            for segment in self.segments:
                if segment.finish():
                    self._changed(segment)
            self.flush()
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
        """Files of `segment`, or names, were changed: the next flush has to start there."""
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
