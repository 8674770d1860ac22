"""Syncing a log as a job (`storage.jobs`): paths in, an error or none out.

The order is that of `storage.log.durability`. Files that are gone when their turn comes are passed
over: retention took them, or the log was truncated, moved or deleted, which the job's generation
tells when it is complete.
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
    """One flush under way. Made by `Durability` only."""

    ran: Callable[["FlushJob", OSError | None], Job[Any] | None]
    """Told the outcome of `run`."""
    fs: FileSystem
    paths: tuple[str, ...]
    """Record files and indexes, then producer snapshots."""
    directories: tuple[str, ...]
    """Whose names are synced."""
    epochs: EpochFlush | None
    asked: int | None
    """The offset that `begin_flush` was given."""
    end: int
    """Where the recovery point may go."""
    generation: int
    """Of the segments, when the paths were taken."""
    taken: frozenset[int]
    """Bases of marked segments: their marks are this job's until it is complete."""
    snapshots: tuple[tuple[int, int], ...]
    """As `SnapshotFiles.unsynced` has named them."""
    goes_on: bool
    """It is one step of a flush of more segments."""
    clock: Clock
    took_s: float = 0.0
    """How long `run` took."""

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
