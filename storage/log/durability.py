"""How much of a log a power loss cannot take: the recovery point, and what a flush has to sync.

What holds
  1. Everything below the recovery point was synced (S-FL-2): records and indexes, the producer
     snapshots up to there, the names of the files, the leader epochs; in that order. Only then the
     recovery point moves.
  2. A change of a segment's files below the recovery point, or of file names, marks the segment
     (`note_change`). A flush syncs all marked segments, wherever they lie; a flush in steps syncs
     with each step the marked ones up to the step's end. A running flush takes the marks over, and
     they count until it is complete: another flush that begins meanwhile syncs the same segments.
     A roll does not write large producer snapshots: the flush that has to sync them begins with a
     job that writes them (`SnapshotFiles.begin_write`).
  3. A flush of many segments goes in steps of `SEGMENTS_A_STEP`, each a job that the one before it
     returns, and the recovery point moves with each: a crash in the middle loses one step's work.
  4. A flush that failed, or was overtaken by a truncation, a move or a replacement of segments
     (`SegmentStore.generation`), gives its marks back and moves nothing. An overtaken one begins
     anew (decision 17): once it completes, all is synced or the log is out of service.

The job of a flush (`FlushJob`) sees paths and numbers; all state is changed here, on the loop. Only
`Log` and its parts use this.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from storage.epochs import LeaderEpochCache
from storage.jobs import Job, perform
from storage.log.flushing import FlushJob
from storage.log.guard import DiskGuard
from storage.log.offsets import LogOffsets
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.paths import parent_dir
from storage.producers.snapshots import SnapshotJob
from storage.producers.state import ProducerStateManager

SEGMENTS_A_STEP: Final = 64
"""Some 200 files: about as many syncs as a slow disk makes in two seconds."""


def _nobody(took_s: float) -> None:
    """The default for `flushed`: a log without a broker."""


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
        self._running: tuple[FlushJob, ...] = ()
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

    def cut_to(self, offset: int) -> bool:
        """Lower the recovery point to `offset`: the log is, or will be, truncated to it, and later
        appends are not synced. True when it moved."""
        if self.recovery_point <= offset:
            return False
        self.recovery_point = offset
        return True

    def flush(self, offset: int | None = None) -> None:
        """`begin_flush` and all its steps, here and now. Raises StorageError."""
        perform(self.begin_flush(offset))

    def begin_flush(self, offset: int | None = None) -> FlushJob | SnapshotJob | None:
        """A job that syncs everything below `offset`, by default the log end.

        None if all of it is synced or the log is out of service. Completing it raises StorageError.
        """
        if self._guard.offline is not None:
            return None
        store = self._store
        end = self._offsets.end if offset is None else min(offset, self._offsets.end)
        start = self.recovery_point
        generation = store.generation
        writing = self._producers.snapshots.begin_write(
            end, lambda error: self._wrote_snapshots(offset, generation, error)
        )
        if writing is not None:
            return writing
        marks = self._marks.union(*(job.taken for job in self._running))
        snapshots = self._producers.snapshots.unsynced(end)
        if not marks and end <= start and not snapshots:
            return None
        due = self._due(marks, start, end)
        goes_on = len(due) > SEGMENTS_A_STEP
        if goes_on:
            end = min(end, due[SEGMENTS_A_STEP])
            due = due[:SEGMENTS_A_STEP]
            marks &= frozenset(due)
            snapshots = self._producers.snapshots.unsynced(end)
        self._write_index_entries(due)
        paths = self._paths_of(due)
        paths += [self._producers.snapshots.path(offset) for offset, _ in snapshots]
        job = FlushJob(
            ran=self._ran,
            fs=store.fs,
            paths=tuple(paths),
            directories=self._directories(names_changed=bool(marks)),
            epochs=self._epochs.begin_flush(),
            asked=offset,
            end=end,
            generation=generation,
            taken=marks,
            snapshots=snapshots,
            goes_on=goes_on,
            clock=store.clock,
        )
        self._marks -= marks
        self._running += (job,)
        return job

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

    # Completing jobs.

    def _wrote_snapshots(
        self, asked: int | None, generation: int, error: OSError | None
    ) -> Job[Any] | None:
        """Begin the flush that syncs the written snapshots with the rest. Raises StorageError."""
        if (
            error is not None
            and self._guard.offline is None
            and generation == self._store.generation
        ):
            self._guard.fail(error)
        return self.begin_flush(asked)

    def _ran(self, job: FlushJob, error: OSError | None) -> Job[Any] | None:
        """Take over a job that synced everything but the epochs, or failed. Raises StorageError."""
        if error is not None or job.generation != self._store.generation:
            return self._give_back(job, error)
        self.flushed(job.took_s)
        if job.epochs is None:
            return self._settle(job)
        try:
            job.epochs.install()
        except OSError as failure:
            return self._give_back(job, failure)
        # Last, after the names: a deleted segment that a crash brings back must find its epochs.
        return job.epochs.replacement.sync_job(lambda error: self._epochs_synced(job, error))

    def _epochs_synced(self, job: FlushJob, error: OSError | None) -> Job[Any] | None:
        if error is not None or job.generation != self._store.generation:
            return self._give_back(job, error)
        if job.epochs is not None:
            job.epochs.settle()
        return self._settle(job)

    def _settle(self, job: FlushJob) -> Job[Any] | None:
        self._ended(job)
        self._producers.snapshots.mark_synced(job.snapshots)
        if job.directories:
            self._store.dir_is_synced = True
        self.recovery_point = max(self.recovery_point, job.end)
        self.last_flush_ms = self._store.clock.wall_ms()
        return self.begin_flush(job.asked) if job.goes_on else None

    def _ended(self, job: FlushJob) -> None:
        self._running = tuple(other for other in self._running if other is not job)

    def _give_back(self, job: FlushJob, error: OSError | None) -> Job[Any] | None:
        self._ended(job)
        self._marks |= job.taken
        if job.epochs is not None:
            job.epochs.replacement.discard()
        if self._guard.offline is not None:
            return None  # deleted, moved away or offline meanwhile: not an error of this flush
        if job.generation == self._store.generation and error is not None:
            self._guard.fail(error)
        return self.begin_flush(job.asked)

    def _check(self) -> None:
        assert self.recovery_point <= self._offsets.end
