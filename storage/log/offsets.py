"""The offsets of a log, and what changes when they move.

    log start  <=  last stable  <=  high watermark  <=  log end

Appends and truncations move the log end, the replication layer the high watermark, deletions the
log start. The first unstable offset is the first one of the oldest transaction that is open or
whose marker lies at or above the high watermark (S-TXN-1).
"""

import logging

from protocol.types import TopicPartition
from storage.epochs import LeaderEpochCache
from storage.errors import OffsetOutOfRange
from storage.log.results import FetchIsolation, StartOffsetReason
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)

Place = tuple[LogSegment, int]
"""A segment and a position in its file."""


class LogOffsets:
    """The offsets of one log.

    Attributes are read freely; `start` and `end` are set by the parts of the log that delete,
    append and truncate.
    """

    __slots__ = (
        "_epochs",
        "_first_unstable",
        "_producers",
        "_segments",
        "_topic_partition",
        "end",
        "high_watermark",
        "high_watermark_place",
        "start",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        segments: LogSegments,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        *,
        start: int,
        end: int,
    ) -> None:
        self._topic_partition = topic_partition
        self._segments = segments
        self._producers = producers
        self._epochs = epochs
        self.start = start
        self.end = end
        """Offset of the next record to come."""
        self.high_watermark = start
        self.high_watermark_place: Place | None = None
        """The place of the high watermark, where its readers stop; None if not known."""
        self._first_unstable: int | None = None
        self.refresh_first_unstable()

    @property
    def last_stable(self) -> int:
        """Below it no transaction is open (S-TXN-1)."""
        unstable = self._first_unstable
        if unstable is not None and unstable < self.high_watermark:
            return unstable
        return self.high_watermark

    def visible_end(self, isolation: FetchIsolation) -> int:
        """The first offset that a reader with `isolation` may not see (S-READ-5)."""
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark
        if isolation is FetchIsolation.TXN_COMMITTED:
            return self.last_stable
        return self.end

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, kept within log start and log end; True when it changed."""
        end = self.end
        if offset >= end:
            offset = end
            active = self._segments.active
            self.high_watermark_place = (active, active.size)
        else:
            offset = max(offset, self.start)
            if offset != self.high_watermark:
                self.high_watermark_place = None
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        if self._first_unstable is not None:
            self._producers.on_high_watermark_updated(offset)
            self.refresh_first_unstable()
        return True

    def maybe_increment_log_start_offset(self, offset: int, reason: StartOffsetReason) -> bool:
        """Raise the log start offset to `offset`; True when it moved (S-RET-6).

        Raises OffsetOutOfRange above the high watermark. The next retention run deletes segments.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                offset, start=self.start, high_watermark=self.high_watermark, end=self.end
            )
        if offset <= self.start:
            return False
        self.start = offset
        _log.info(
            "Incremented log start offset of %s to %d due to %s",
            self._topic_partition,
            offset,
            reason.value,
        )
        self._epochs.truncate_from_start(offset)
        self._producers.on_log_start_offset_incremented(offset)
        self.refresh_first_unstable()
        return True

    def cut(self, start: int, end: int) -> None:
        """Set the offsets of a log that was truncated; its producer state was reloaded before."""
        self.start, self.end = start, end
        if self.high_watermark >= end:
            self.update_high_watermark(end)
        # The reloaded state counts all completed transactions as above the high watermark.
        self._producers.on_high_watermark_updated(self.high_watermark)
        self.refresh_first_unstable()

    def refresh_first_unstable(self) -> None:
        """Take over the first unstable offset after transactions began or ended."""
        first = self._producers.first_unstable_offset
        self._first_unstable = None if first is None else max(first, self.start)

    def _check(self) -> None:
        assert self.start <= self.last_stable <= self.high_watermark <= self.end
        if self.high_watermark_place is not None:
            segment, position = self.high_watermark_place
            assert self._segments.get(segment.base_offset) is segment
            assert position <= segment.size
