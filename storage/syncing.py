"""Syncing by path, for work that is handed names and no open files.

A file that is gone matters no more: whoever removed or renamed it knows what that means. Raises
OSError.
"""

from collections.abc import Callable, Iterable
from typing import Any

from storage.filesystem import FileSystem
from storage.jobs import Job


def sync_files(fs: FileSystem, paths: Iterable[str]) -> None:
    """The contents of those that exist are durable when this returns. May block for long."""
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
"""Told, on the loop, the error or None. May return what is to be run next."""


class SyncDirectory:
    """Job: the names in a directory are made durable, then `done` is told."""

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
