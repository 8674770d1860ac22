"""Cutting a log back, or emptying it, as a follower does whose records differ from its leader's.

This is the only operation that syncs on the event loop: it is rare, and after a power loss the
records cut off must not come back behind the next append.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from storage.epochs import LeaderEpochCache
from storage.errors import OutOfResources
from storage.log import replay
from storage.log.durability import Durability
from storage.log.offsets import LogOffsets
from storage.log.reading import LogReader
from storage.log.store import SegmentStore
from storage.producers.state import ProducerStateManager


class Truncator:
    """Cuts one log at its end, or empties it. Everything raises OSError.

    `truncate_to` raises CorruptBatch, too, if it cannot find the place.
    """

    __slots__ = (
        "_durability",
        "_epochs",
        "_offsets",
        "_producers",
        "_reader",
        "_store",
        "lowered",
        "truncated",
    )

    def __init__(
        self,
        store: SegmentStore,
        offsets: LogOffsets,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        durability: Durability,
        reader: LogReader,
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._producers = producers
        self._epochs = epochs
        self._durability = durability
        self._reader = reader
        self.lowered: Callable[[], None] | None = None
        """Called when the recovery point was lowered, before anything is cut off."""
        self.truncated: Callable[[int], None] | None = None
        """Called with the log start of before once segments were cut, or were about to be when the
        disk failed."""

    def truncate_to(self, offset: int) -> bool:
        """Drop all batches from the one that holds `offset` on; True when there were any."""
        offsets = self._offsets
        if offset >= offsets.end:
            # A leader that wrote no records may have left an epoch at the log end.
            self._epochs.truncate_from_end(offsets.end)
            return False
        holder = self._store.segments.floor(offset)
        if holder is None:
            self.truncate_fully_and_start_at(offset, offset)
            return True
        holder.find_for_sure(offset)  # a damaged batch before it is met now: nothing is cut then
        self._lower_recovery_point(offset)
        with self._telling():
            # Before the segments: cutting them syncs the names, so no snapshot comes back after it.
            self._producers.snapshots.delete_above(offset)
            self._store.truncate_to(offset)
            self._epochs.truncate_from_end(offset)
            self._shrunk_to(min(offset, offsets.start), offset)
        return True

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        self._lower_recovery_point(offset)
        with self._telling():
            self._producers.truncate_fully_and_start_at(offset)
            self._store.restart_at(offset)
            self._epochs.clear()
            self._shrunk_to(log_start_offset, offset)
            self._offsets.update_high_watermark(offset)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Call `truncated` after the cut inside, however far it came: some segments may be gone."""
        start = self._offsets.start
        try:
            yield
        finally:
            if self.truncated is not None:
                self.truncated(start)

    def _lower_recovery_point(self, offset: int) -> None:
        """Lower the recovery point, so that after a crash the next appends do not look synced."""
        before = self._durability.recovery_point
        if before <= offset:
            return
        self._durability.cut_to(offset)
        if self.lowered is None:
            return
        try:
            self.lowered()
        except OutOfResources:
            # Nothing is cut. The next attempt must start from the point that is still on the disk.
            self._durability.recovery_point = before
            raise

    def _shrunk_to(self, start: int, end: int) -> None:
        self._durability.cut_to(end)
        self._durability.note_change(self._store.segments.active)
        self._reader.forget()
        replay.rebuild(self._producers, self._store.segments, end, self._store.clock.wall_ms())
        self._offsets.cut(start, end)
