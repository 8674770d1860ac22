"""Replacing segments of a log by others: how compaction takes effect.

A job has written the new segments as `.cleaned` files and synced them; they hold no offset that the
old ones did not span. On the loop, in Kafka's order (`LocalLog.replaceSegments`):

  1. `.cleaned` becomes `.swap`, the last segment first. A crash before the last of these renames
     leaves a `.cleaned` file, which tells the next start to undo: the old segments are whole.
  2. From then on a start finishes the replacement (`storage.leftovers`). The old segments become
     `.deleted`, and are unlinked later; so do the producer snapshots of bases that vanish.
  3. `.swap` is taken off the new segments' names.

Nothing is synced here: directories keep the order of renames, so a power loss leaves the state
after one of them. The lowest new segment is marked, so the next flush syncs the names. Slices that
readers hold stay readable, because they hold the old files.

A disk error in the middle takes the directory offline, and the next start finishes or undoes the
replacement (S-REC-2).
"""

from collections.abc import Sequence

from storage.errors import StaleGeneration
from storage.log.deleting import SegmentDeleter
from storage.log.durability import Durability
from storage.log.guard import DiskGuard
from storage.log.results import Deleted, DeletionReason
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments
from storage.log.store import SegmentStore


class Replacer:
    """Replaces segments of the log by those that a job has written."""

    __slots__ = ("_deleter", "_durability", "_guard", "_store")

    def __init__(
        self,
        store: SegmentStore,
        durability: Durability,
        deleter: SegmentDeleter,
        guard: DiskGuard,
    ) -> None:
        self._store = store
        self._durability = durability
        self._deleter = deleter
        self._guard = guard

    def open_cleaned(self, base_offset: int, *, size: int | None = None) -> LogSegment:
        """A segment over `.cleaned` files; see `SegmentStore.open_cleaned`. Raises StorageError."""
        with self._guard.writing():
            return self._store.open_cleaned(base_offset, size=size)

    def replace(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], *, generation: int
    ) -> list[Deleted]:
        """Replace `old` by `new`; returns the segments taken out. Raises StorageError.

        `generation` is the store's at the time `old` was read. If it has changed, or any of `old`
        is gone, raises StaleGeneration before anything is changed, and ValueError for the active
        segment or segments that do not fit; the caller then removes the `.cleaned` files.
        """
        self._guard.check()
        with self._guard.writing():
            return self._replace(new, old, generation)

    def _replace(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], generation: int
    ) -> list[Deleted]:
        store = self._store
        new = sorted(new, key=lambda segment: segment.base_offset)
        old = sorted(old, key=lambda segment: segment.base_offset)
        if generation != store.generation or any(
            store.segments.get(segment.base_offset) is not segment for segment in old
        ):
            raise StaleGeneration(store.directory)
        _check_places(store.segments, new, old)
        vanishing = {s.base_offset for s in old} - {s.base_offset for s in new}
        gone = store.replace(new, old, DeletionReason.COMPACTION)
        self._durability.note_change(new[0])
        self._deleter.forget([one for one in gone if one.base_offset in vanishing])
        return gone


def _check_places(
    segments: LogSegments, new: Sequence[LogSegment], old: Sequence[LogSegment]
) -> None:
    """Check that `new` fits in the place of `old`. Raises ValueError: a bug of the caller."""
    if not new or not old:
        raise ValueError("segments are replaced by segments")
    if old[-1] is segments.active:
        raise ValueError(f"{old[-1]!r} is the active segment")
    following = segments.higher(old[-1].base_offset)
    assert following is not None
    spanned = segments.between(old[0].base_offset, following.base_offset)
    if list(old) != spanned:
        raise ValueError(f"{old} are not all segments of that range: {spanned}")
    bases = [segment.base_offset for segment in new]
    if len(set(bases)) < len(bases) or not (
        old[0].base_offset <= bases[0] and bases[-1] < following.base_offset
    ):
        raise ValueError(f"segments at {bases} do not fit into the place of {old}")
