"""Syncing a log as a job (`storage.jobs`): paths in, an error or None out.

The order is that of `storage.log.durability`. Files that no longer exist are skipped: retention
deleted them, or the log was truncated, moved or deleted, which the job's generation shows at its
completion.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storage.clock import Clock
from storage.epochs import EpochFlush
from storage.filesystem import FileSystem
from storage.jobs import Job
from storage.syncing import sync_files


@dataclass(slots=True, kw_only=True, eq=False)
class FlushJob:
    """One flush in progress. Only `Durability` makes these."""

    ran: Callable[["FlushJob", OSError | None], Job[Any] | None]
    """Called with the job and the outcome of `run`."""
    fs: FileSystem
    paths: tuple[str, ...]
    """Record files and indexes, then producer snapshots."""
    directories: tuple[str, ...]
    """Directories to sync, for the names in them."""
    epochs: EpochFlush | None
    asked: int | None
    """The offset that `begin_flush` was given."""
    end: int
    """The recovery point after this job."""
    generation: int
    """`SegmentStore.generation` when the paths were taken."""
    taken: frozenset[int]
    """Bases of the marked segments that this job syncs."""
    snapshots: tuple[tuple[int, int], ...]
    """As `SnapshotFiles.unsynced` returned them."""
    goes_on: bool
    """Whether another step of the same flush follows."""
    clock: Clock
    took_s: float = 0.0
    """Seconds that `run` took."""

    def run(self) -> OSError | None:
        """See `storage.jobs`."""
        began = self.clock.monotonic()
        try:
            sync_files(self.fs, self.paths)
            for directory in self.directories:
                self.fs.fsync_dir(directory)
            if self.epochs is not None:
                self.epochs.replacement.write()
        except OSError as error:
            return error
        self.took_s = self.clock.monotonic() - began
        return None

    def complete(self, error: OSError | None, /) -> Job[Any] | None:
        """See `storage.jobs`. Raises StorageError."""
        return self.ran(self, error)
