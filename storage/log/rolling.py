"""Ending the active segment and starting the next one (S-ROLL-3, S-ROLL-4).

Nothing is synced here: a roll happens in the middle of an append. The old segment is marked as
unsynced (`storage.log.durability`), and `ended` is called, so that the flusher syncs it soon.
"""

import logging
from collections.abc import Callable

from protocol.types import TopicPartition
from storage.errors import is_shortage
from storage.log.durability import Durability
from storage.log.offsets import LogOffsets
from storage.log.results import RollReason
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


class Roller:
    """Rolls the active segment of one log. `ended` is set by the owner of the log."""

    __slots__ = (
        "_durability",
        "_offsets",
        "_producers",
        "_store",
        "_topic_partition",
        "ended",
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
        self._offsets = offsets
        self._producers = producers
        self._durability = durability
        self.ended: Callable[[int], None] | None = None
        """Called with the offset below which everything should be flushed soon."""

    def roll(self, first_offset: int, reason: RollReason) -> LogSegment:
        """Start a segment for a batch that begins at `first_offset`, which on a follower may lie
        beyond the log end. Raises OSError."""
        store, offsets = self._store, self._offsets
        old = store.segments.active
        base = max(first_offset, offsets.end)
        segment = store.roll(base)
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
