"""When the active segment is full, and how the next one begins (S-ROLL-1 to S-ROLL-5).

The active segment ends before an append

  * that would make it larger than `segment.bytes`;
  * whose timestamp is later than that of the segment's first batch by more than `segment.ms`, less
    the jitter (`segment.jitter.ms`), which is drawn anew for each segment. If the first batch has
    no timestamp, the time since the segment was made counts. A compacted topic rolls early enough
    for its records to be cleaned in time (`max.compaction.lag.ms`);
  * whose index entry has no room in one of the indexes (`segment.index.bytes`);
  * whose last offset is too far from the base offset for an index entry.

It also ends when retention deletes all segments, or a caller asks. An empty segment ends only for
want of room.

Nothing is synced here: a roll happens in the middle of an append. The old segment is marked as
unsynced (`storage.log.durability`), and `ended` is called, so that the flusher syncs it soon.
"""

import logging
from collections.abc import Callable

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.types import TopicPartition
from storage.errors import is_shortage
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.log.durability import Durability
from storage.log.offsets import LogOffsets
from storage.log.results import RollReason
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.log.validation import RejectedRecords
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


class Roller:
    """Rolls the active segment of one log. Sizes are bytes, times milliseconds."""

    __slots__ = (
        "_clock",
        "_durability",
        "_most_ms",
        "_offsets",
        "_producers",
        "_segment_bytes",
        "_segment_ms",
        "_segments",
        "_store",
        "_topic_partition",
        "ended",
        "jitter_ms",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        offsets: LogOffsets,
        producers: ProducerStateManager,
        durability: Durability,
    ) -> None:
        self._topic_partition = topic_partition
        self._store = store
        self._segments = store.segments
        self._clock = store.clock
        self._offsets = offsets
        self._producers = producers
        self._durability = durability
        self.ended: Callable[[int], None] | None = None
        """Called with the offset below which everything should be flushed soon."""
        self.jitter_ms = self._draw_jitter()
        """How much earlier than after `segment.ms` the active segment rolls."""
        self.configure(store.config)

    def configure(self, config: TopicConfig) -> None:
        """Use this topic configuration from now on; the active segment keeps its jitter."""
        self._segment_bytes = config.segment_bytes
        self._segment_ms = (
            min(config.segment_ms, config.max_compaction_lag_ms)
            if config.compact
            else config.segment_ms
        )
        self._most_ms = self._segment_ms - self.jitter_ms

    def _draw_jitter(self) -> int:
        config = self._store.config
        most = min(config.segment_jitter_ms, config.segment_ms)
        return self._store.random.randrange(most) if most > 0 else 0

    def reason_for(self, size: int, last_offset: int, max_timestamp: int) -> RollReason | None:
        """Why an append of `size` bytes needs a new segment; None if it does not.

        `last_offset` and `max_timestamp` are those of all its batches. Raises
        RECORD_LIST_TOO_LARGE, OSError.
        """
        segment = self._segments.active
        if segment.size > self._segment_bytes - size:
            if size > self._segment_bytes:
                raise self._too_large(size)
            return RollReason.SIZE
        if segment.size:
            first = segment.first_timestamp
            if first is None:
                first = segment.read_first_timestamp()
            waited = (
                max_timestamp - first if first >= 0 else self._clock.wall_ms() - segment.created_ms
            )
            if waited > self._most_ms:
                return RollReason.TIME
        indexes = segment.known_indexes
        if indexes is None or not indexes.free:
            full = segment.indexes.full()
            if full is not None:
                return full
        if last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
            return RollReason.OFFSET_OVERFLOW
        return None

    def _too_large(self, size: int) -> RejectedRecords:
        return RejectedRecords(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self._topic_partition}, "
            f"which exceeds the maximum configured segment size of {self._segment_bytes}.",
        )

    def roll(self, first_offset: int, reason: RollReason) -> LogSegment:
        """Start a segment for a batch that begins at `first_offset`, which on a follower may lie
        beyond the log end. Raises OSError."""
        store, offsets = self._store, self._offsets
        old = store.segments.active
        base = max(first_offset, offsets.end)
        segment = store.roll(base)
        self.jitter_ms = self._draw_jitter()
        self._most_ms = self._segment_ms - self.jitter_ms
        _log.debug(
            "Rolled %s at offset %d: %s (segment %d, %d bytes)",
            self._topic_partition,
            base,
            reason.value,
            old.base_offset,
            old.size,
        )
        self._durability.note_change(old)
        # A snapshot at the new base lets recovery start there (S-ROLL-4).
        self._producers.map_end_offset = base
        try:
            self._producers.take_snapshot(sync=False)
        except OSError as error:
            if not is_shortage(error):
                raise
            _log.warning(
                "%s has no producer snapshot at %d: %s", self._topic_partition, base, error
            )
        if offsets.high_watermark >= offsets.end:
            offsets.high_watermark_place = None
        if self.ended is not None:
            self.ended(base)
        return segment
