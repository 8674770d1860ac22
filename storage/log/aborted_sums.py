"""A log's line in the checkpoint of its aborted transactions (`storage.aborted_checkpoint`).

It is asked for whenever recovery points are written down, of every log of the directory. So it is
kept until anything in it has changed, and of segments that have ended for longer than that: what an
append costs does not depend on how many segments there are.
"""

from itertools import zip_longest
from typing import Final

from protocol.types import ZERO_UUID, TopicPartition
from storage.aborted_checkpoint import line_of, word_of
from storage.index.transaction_index import Checksum
from storage.log.durability import Durability
from storage.log.offsets import LogOffsets
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore

_NEVER: Final = -1


class AbortedSums:
    """Counts and sums a log's aborted transactions as they come, for its line in the checkpoint."""

    __slots__ = (
        "_durability",
        "_ended",
        "_ended_of",
        "_ends_at",
        "_line",
        "_line_of",
        "_offsets",
        "_settled",
        "_store",
        "_topic_partition",
        "learned",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        store: SegmentStore,
        offsets: LogOffsets,
        durability: Durability,
    ) -> None:
        self._topic_partition = topic_partition
        self._store = store
        self._offsets = offsets
        self._durability = durability
        self.learned = 0
        """How often more became known of a segment."""
        self._settled = store.generation
        """The last generation of the store whose names were seen to be synced."""
        self._line = ""
        self._line_of: tuple[int, int, int, bytes, bool] = (_NEVER, 0, 0, ZERO_UUID, False)
        """Recovery point and more that `_line` is of."""
        self._ended: tuple[str, ...] = ()
        """What it says of segments that ended at or below the recovery point."""
        self._ended_of: tuple[int, int, int, bool] = (_NEVER, 0, 0, False)
        self._ends_at = 0
        """Base of the first segment that is not in `_ended`."""

    def line(self, topic_id: bytes) -> str:
        """Of the log as it is, below its recovery point."""
        store, durability = self._store, self._durability
        if durability.names_are_synced:
            self._settled = store.generation
        # Until then a power loss may bring the segments back that these have replaced.
        is_settled = store.generation == self._settled
        state = (durability.recovery_point, store.generation, self.learned, topic_id, is_settled)
        if state != self._line_of:
            self._line = line_of(
                self._topic_partition,
                topic_id,
                durability.recovery_point,
                self._words(durability.recovery_point, is_settled),
            )
            self._line_of = state
        return self._line

    def _words(self, point: int, is_settled: bool) -> tuple[str, ...]:
        store = self._store
        first = store.segments.first.base_offset
        state = (store.generation, self.learned, first, is_settled)
        if state != self._ended_of or self._ends_at > point:
            self._ended, self._ended_of, self._ends_at = (), state, first
        left = store.segments.snapshot_from(self._ends_at)
        words: list[str] = []
        last: tuple[str, ...] = ()
        for segment, following in zip_longest(left, left[1:]):
            if segment.base_offset >= point:
                break
            if following is None or following.base_offset > point:
                last = (word_of(segment.base_offset, self._below(segment, point)),)
                break
            known = segment.aborted_sum if is_settled else None
            words.append(word_of(segment.base_offset, known))
            self._ends_at = following.base_offset
        if words:
            self._ended += tuple(words)
        return self._ended + last

    def _below(self, segment: LogSegment, point: int) -> Checksum | None:
        """Of the segment that holds the recovery point, or that ends there."""
        if point >= self._offsets.end:
            return segment.aborted_sum
        try:
            return segment.aborted_below(point)
        except OSError:
            return None  # it is a hint; who needs the index will meet the disk
