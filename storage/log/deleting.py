"""Taking segments out of a log: retention (S-RET-2 to S-RET-5), and what each deletion entails.

Files are renamed `.deleted` at once and unlinked later (`storage.log.store`). A segment's producer
snapshot is deleted with it, and the reader forgets its remembered positions.
"""

import logging

from protocol.types import TopicPartition
from storage.log import retention
from storage.log.durability import Durability
from storage.log.guard import DiskGuard
from storage.log.offsets import LogOffsets
from storage.log.reading import LogReader
from storage.log.results import Deleted, DeletionReason, RollReason, StartOffsetReason
from storage.log.rolling import Roller
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


class SegmentDeleter:
    """Takes segments out of one log, for retention and for other parts of the log."""

    __slots__ = (
        "_durability",
        "_guard",
        "_offsets",
        "_producers",
        "_reader",
        "_roller",
        "_store",
        "_topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        offsets: LogOffsets,
        producers: ProducerStateManager,
        durability: Durability,
        reader: LogReader,
        roller: Roller,
        guard: DiskGuard,
    ) -> None:
        self._topic_partition = topic_partition
        self._store = store
        self._offsets = offsets
        self._producers = producers
        self._durability = durability
        self._reader = reader
        self._roller = roller
        self._guard = guard

    def delete_old_segments(self) -> list[Deleted]:
        """Apply retention; returns the deleted segments with reasons. Raises StorageError."""
        gone: list[Deleted] = []
        store = self._store
        with self._guard.writing():
            for expired, reason in retention.rules(
                store.config,
                self._offsets.start,
                lambda: store.segments.size,
                store.clock.wall_ms(),
            ):
                gone += self._delete(expired, reason)
        return gone

    def _delete(self, expired: retention.Expired, reason: DeletionReason) -> list[Deleted]:
        segments, offsets = self._store.segments, self._offsets
        doomed = retention.deletable(
            segments,
            expired,
            high_watermark=offsets.high_watermark,
            log_end_offset=offsets.end,
        )
        if not doomed:
            return []
        if len(doomed) == len(segments):
            # A log always has an active segment.
            self._roller.roll(offsets.end, RollReason.REQUESTED)
        doomed = self._known_without(doomed)
        if not doomed:
            return []
        following = segments.higher(doomed[-1].base_offset)
        assert following is not None
        offsets.maybe_increment_log_start_offset(
            following.base_offset, StartOffsetReason.SEGMENT_DELETION
        )
        gone = self._store.delete(doomed, reason)
        self._durability.note_change(segments.active)
        for one in gone:
            _log.info(
                "Deleted segment %d (%d bytes) of %s due to %s",
                one.base_offset,
                one.size,
                self._topic_partition,
                reason.value,
            )
        self.forget(gone)
        return gone

    def _known_without(self, doomed: list[LogSegment]) -> list[LogSegment]:
        """Those of `doomed` whose producers a crash cannot lose: a later snapshot is in its file.

        While large snapshots wait to be written, the other segments stay until the next retention
        run (S-IDEM-3).
        """
        snapshots, segments = self._producers.snapshots, self._store.segments
        if not snapshots.are_pending:
            return doomed
        written = snapshots.latest_written
        following = [segments.higher(one.base_offset) for one in doomed]
        return [
            one
            for one, later in zip(doomed, following, strict=True)
            if later is not None and written is not None and later.base_offset <= written
        ]

    def forget(self, gone: list[Deleted]) -> None:
        """Delete the segments' producer snapshots and remembered positions. Raises OSError."""
        due = self._store.clock.wall_ms() + self._store.config.file_delete_delay_ms
        for one in gone:
            path = self._producers.snapshots.mark_deleted(one.base_offset)
            if path is not None:
                self._store.pend(path, due)
        self._reader.forget()
