"""Syncing by path, for work that is handed names and no open files.

A missing file is skipped: whoever removed or renamed it accounts for that. Raises OSError.
"""

from collections.abc import Callable, Iterable
from typing import Any

from storage.filesystem import FileSystem
from storage.jobs import Job


def sync_files(fs: FileSystem, paths: Iterable[str]) -> None:
    """Sync those of the files that exist. May block for long. Raises OSError."""
    for path in paths:
        try:
            file = fs.open(path)
        except FileNotFoundError:
            continue
        try:
            file.fsync()
        finally:
            file.close()


Done = Callable[[OSError | None], Job[Any] | None]
"""Called on the loop with the error or None. May return the job to run next."""


class SyncDirectory:
    """Job: syncs a directory's names, then calls `done`."""

    __slots__ = ("_directory", "_done", "_fs")

    def __init__(self, fs: FileSystem, directory: str, done: Done) -> None:
        self._fs = fs
        self._directory = directory
        self._done = done

    def run(self) -> OSError | None:
        """See `storage.jobs`."""
        try:
            self._fs.fsync_dir(self._directory)
        except OSError as error:
            return error
        return None

    def complete(self, error: OSError | None, /) -> Job[Any] | None:
        """See `storage.jobs`. Raises what `done` raises."""
        return self._done(error)
