"""A log's line in the checkpoint of its aborted transactions (`storage.aborted_checkpoint`).

Every write of recovery points asks every log of the directory for its line. So the line is cached
until anything in it changes, and the words of rolled segments even longer: after an append, the
cost of the next line does not depend on the number of segments.
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
    """Makes one log's line from the `aborted_sum` of its segments, and caches it."""

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
        """How many segments' `aborted_sum` became known since the log was opened."""
        self._settled = store.generation
        """The last generation of the store that was seen with all names synced."""
        self._line = ""
        self._line_of: tuple[int, int, int, bytes, bool] = (_NEVER, 0, 0, ZERO_UUID, False)
        """The state that `_line` was made from: the recovery point and what else it depends on."""
        self._ended: tuple[str, ...] = ()
        """The line's words of segments that ended at or below the recovery point."""
        self._ended_of: tuple[int, int, int, bool] = (_NEVER, 0, 0, False)
        self._ends_at = 0
        """Base of the first segment that is not in `_ended`."""

    @property
    def written_down(self) -> tuple[int, int]:
        """Changes whenever the recovery point or `line` does."""
        return self._durability.recovery_point, self.learned

    def line(self, topic_id: bytes) -> str:
        """The line of the log below its current recovery point."""
        store, durability = self._store, self._durability
        if durability.names_are_synced:
            self._settled = store.generation
        # Until then a power loss may bring back the segments that these have replaced.
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
            known = segment.aborted.sum if is_settled else None
            words.append(word_of(segment.base_offset, known))
            self._ends_at = following.base_offset
        if words:
            self._ended += tuple(words)
        return self._ended + last

    def _below(self, segment: LogSegment, point: int) -> Checksum | None:
        """The checksum of the entries below the recovery point, which the segment holds or ends at;
        None if not known."""
        if point >= self._offsets.end:
            return segment.aborted.sum
        try:
            return segment.aborted.sum_below(point)
        except OSError:
            return None  # the line is a hint; the next read of the index reports the disk error
