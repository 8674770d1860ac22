"""The part of a log that a power loss cannot take: the recovery point, and the work of a flush.

Invariants
  1. Everything below the recovery point was synced (S-FL-2): records and indexes, the producer
     snapshots up to there, the names of the files, the leader epochs; in that order. Only then the
     recovery point moves.
  2. A change of a segment's files below the recovery point, or of file names, marks the segment
     (`note_change`). A flush syncs all marked segments, wherever they lie; a flush in steps syncs
     with each step the marked ones up to the step's end. A running step takes the marks over, and
     they count until it is complete: another flush that begins meanwhile syncs the same segments.
     A roll does not write large producer snapshots: the flush that has to sync them writes them
     first (`SnapshotFiles.write_pending`).
  3. A flush of many segments goes in steps of `SEGMENTS_A_STEP`, and the recovery point moves with
     each: a crash in the middle loses one step's work.
  4. A step that failed, or was overtaken by a truncation, a move or a replacement of segments
     (`SegmentStore.generation`), gives its marks back and moves nothing. An overtaken one begins
     anew (decision 17): once the flush returns, all is synced or the log is out of service.

A thread sees paths and numbers (`_Step.sync`); all state is changed here, on the loop. Files that
no longer exist are skipped: retention deleted them, or the generation has changed. Only `Log` and
its parts use this.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from storage.clock import Clock
from storage.epochs import EpochFlush, LeaderEpochCache
from storage.filesystem import FileSystem
from storage.log.guard import DiskGuard
from storage.log.offsets import LogOffsets
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.paths import parent_dir
from storage.producers.state import ProducerStateManager
from storage.syncing import sync_files
from storage.waits import call

SEGMENTS_A_STEP: Final = 64
"""Some 200 files: about as many syncs as a slow disk makes in two seconds."""


def _nobody(took_s: float) -> None:
    """The default for `flushed`: a log without a broker."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Step:
    """One step of a flush."""

    fs: FileSystem
    clock: Clock
    paths: tuple[str, ...]
    """Record files and indexes, then producer snapshots."""
    directories: tuple[str, ...]
    """Directories to sync, for the names in them."""
    epochs: EpochFlush | None
    end: int
    """The recovery point afterwards."""
    generation: int
    """`SegmentStore.generation` when the paths were taken."""
    taken: frozenset[int]
    """Bases of the marked segments that it syncs."""
    snapshots: tuple[tuple[int, int], ...]
    """As `SnapshotFiles.unsynced` returned them."""
    is_last: bool

    def sync(self) -> float:
        """Sync everything but the epochs, which are written; return how many seconds it took.

        In any thread. Raises OSError.
        """
        began = self.clock.monotonic()
        sync_files(self.fs, self.paths)
        for directory in self.directories:
            self.fs.fsync_dir(directory)
        if self.epochs is not None:
            self.epochs.replacement.write()
        return self.clock.monotonic() - began


class Durability:
    """The recovery point of one log, and what is not synced yet. Times are milliseconds."""

    __slots__ = (
        "_epochs",
        "_guard",
        "_marks",
        "_offsets",
        "_producers",
        "_running",
        "_store",
        "flushed",
        "last_flush_ms",
        "recovery_point",
    )

    def __init__(
        self,
        store: SegmentStore,
        offsets: LogOffsets,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        guard: DiskGuard,
        *,
        recovery_point: int,
        unsynced_from: int | None,
    ) -> None:
        """`unsynced_from`: the base of the first segment with unsynced files; None if all are."""
        self._store = store
        self._offsets = offsets
        self._producers = producers
        self._epochs = epochs
        self._guard = guard
        self.recovery_point = recovery_point
        self.last_flush_ms = store.clock.wall_ms()
        self._marks: frozenset[int] = frozenset()
        """Bases of marked segments that no running flush has taken. Segments deleted since are
        kept here, because the directory has to be synced."""
        if unsynced_from is not None:
            bases = store.segments.base_offsets
            self._marks = frozenset(base for base in bases if base >= unsynced_from)
        self._running: tuple[_Step, ...] = ()
        self.flushed: Callable[[float], None] = _nobody
        """Called with the seconds that each step of a flush took."""

    def note_change(self, segment: LogSegment) -> None:
        """Mark `segment`: the next flush has to sync its files and the directory."""
        self._marks |= {segment.base_offset}

    @property
    def names_are_synced(self) -> bool:
        """Whether segments that were deleted stay so after a crash."""
        return not self._marks and not self._running

    @property
    def is_synced(self) -> bool:
        """Whether a flush would find nothing to do."""
        return self.recovery_point >= self._offsets.end and self.names_are_synced

    def cut_to(self, offset: int) -> None:
        """Lower the recovery point to `offset`: the log is, or will be, truncated to it, and later
        appends are not synced."""
        self.recovery_point = min(self.recovery_point, offset)

    async def flush(self, offset: int | None = None) -> None:
        """Sync everything below `offset`, by default the log end, and move the recovery point.

        Returns when all of that is synced, even if the log was truncated or moved meanwhile, or
        when the log is out of service. Raises StorageError.
        """
        while self._guard.offline is None:
            end = self._offsets.end if offset is None else min(offset, self._offsets.end)
            generation = self._store.generation
            try:
                if await self._producers.snapshots.write_pending(end):
                    continue  # the next step syncs them
                step = self._begin(end)
                if step is None:
                    return
                if await self._carry_out(step) and step.is_last:
                    return
            except OSError as error:
                # Deleted, moved away or offline meanwhile: not an error of this flush.
                if generation == self._store.generation:
                    self._guard.fail(error)

    def _begin(self, end: int) -> _Step | None:
        """The first step of a flush up to `end`; None if all of it is synced."""
        store = self._store
        start = self.recovery_point
        marks = self._marks.union(*(step.taken for step in self._running))
        snapshots = self._producers.snapshots.unsynced(end)
        if not marks and end <= start and not snapshots:
            return None
        due = self._due(marks, start, end)
        is_last = len(due) <= SEGMENTS_A_STEP
        if not is_last:
            end = min(end, due[SEGMENTS_A_STEP])
            due = due[:SEGMENTS_A_STEP]
            marks &= frozenset(due)
            snapshots = self._producers.snapshots.unsynced(end)
        self._write_index_entries(due)
        paths = self._paths_of(due)
        paths += [self._producers.snapshots.path(offset) for offset, _ in snapshots]
        step = _Step(
            fs=store.fs,
            clock=store.clock,
            paths=tuple(paths),
            directories=self._directories(names_changed=bool(marks)),
            epochs=self._epochs.begin_flush(),
            end=end,
            generation=store.generation,
            taken=marks,
            snapshots=snapshots,
            is_last=is_last,
        )
        self._marks -= marks
        self._running += (step,)
        return step

    def _due(self, marks: frozenset[int], start: int, end: int) -> list[int]:
        """Bases of the segments that are marked, or hold offsets in [start, end); ascending."""
        due = set(marks)
        if start < end:
            segments = self._store.segments.snapshot_from(start)
            due |= {s.base_offset for s in segments if s.base_offset < end}
        return sorted(due)

    def _write_index_entries(self, bases: Iterable[int]) -> None:
        """Write entries that segments still hold in memory into their files, to be synced: below
        the recovery point a start relies on the indexes."""
        for base in bases:
            segment = self._store.segments.get(base)
            if segment is not None:
                segment.write_index_entries()

    def _paths_of(self, bases: Iterable[int]) -> list[str]:
        """All files of those segments that still exist."""
        found = (self._store.segments.get(base) for base in bases)
        return [path for segment in found if segment is not None for path in segment.files.paths]

    def _directories(self, *, names_changed: bool) -> tuple[str, ...]:
        directory = self._store.directory
        if not self._store.dir_is_synced:
            return directory, parent_dir(directory)
        return (directory,) if names_changed else ()

    async def _carry_out(self, step: _Step) -> bool:
        """Make durable all that the step took; False if it was overtaken. Raises OSError."""
        is_durable = False
        try:
            is_durable = await self._sync(step)
        finally:
            self._running = tuple(other for other in self._running if other is not step)
            if is_durable:
                self._settle(step)
            else:
                self._give_back(step)
        return is_durable

    async def _sync(self, step: _Step) -> bool:
        took_s = await call(step.sync)
        if self._is_overtaken(step):
            return False
        self.flushed(took_s)
        if step.epochs is not None:
            step.epochs.install()
            # After the names: a deleted segment that a crash brings back must find its epochs.
            await step.epochs.replacement.sync()
            if self._is_overtaken(step):
                return False
            step.epochs.settle()
        return True

    def _is_overtaken(self, step: _Step) -> bool:
        return step.generation != self._store.generation

    def _settle(self, step: _Step) -> None:
        self._producers.snapshots.mark_synced(step.snapshots)
        if step.directories:
            self._store.dir_is_synced = True
        self.recovery_point = max(self.recovery_point, step.end)
        self.last_flush_ms = self._store.clock.wall_ms()

    def _give_back(self, step: _Step) -> None:
        self._marks |= step.taken
        if step.epochs is not None:
            step.epochs.replacement.discard()

    def _check(self) -> None:
        assert self.recovery_point <= self._offsets.end
