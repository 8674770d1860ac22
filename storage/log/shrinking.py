"""Starting a new segment, and everything that makes a log shorter: truncation and retention.

The middle layer of `Log`; see `storage.log.state`.
"""

import logging

from storage.log import replay, retention
from storage.log.results import (
    Deleted,
    DeletionReason,
    PendingDeletion,
    RollReason,
    StartOffsetReason,
)
from storage.log.segment import LogSegment
from storage.log.state import LogState

_log = logging.getLogger(__name__)


class ShrinkingLog(LogState):
    """A log that can roll, be cut back and drop what is old."""

    __slots__ = ()

    # Rolling.

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
        self._before_new_segment()
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
        # Not synced here, on the event loop: `flush` does it before the recovery point gets there.
        self.producers.take_snapshot(sync=False)
        if self._high_watermark >= self._log_end_offset:
            self._hw_place = None
        if self._rolled is not None:
            self._rolled(self, base)
        return segment

    def _before_new_segment(self) -> None:
        """Until now a crash led to the recovery of the active segment, whatever the checkpoint."""
        if self._rolling is not None:
            self._rolling(self)

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
            # Before the segments: none may come back once these are cut, and the names are synced.
            self.producers.snapshots.delete_above(offset)
            self._forget_deleted(self._store.truncate_to(offset))
            self.leader_epochs.truncate_from_end(offset)
            self._shrunk_to(offset, min(offset, self.log_start_offset))
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the next record gets `offset`. Raises StorageError."""
        self._expect_idle()
        self._before_new_segment()
        with self._writing():
            self.producers.truncate_fully_and_start_at(offset)
            self._forget_deleted(self._store.restart_at(offset))
            self.leader_epochs.clear()
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
        replay.rebuild(self.producers, self.segments, end_offset, self._clock.wall_ms())
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
        self._changed(self.segments.active)
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
