"""Removing renamed partition directories and segment files when they are due.

The renames have deleted them already (S-RET-7, S-RET-8); this frees the space. After a crash the
next start recognises the names.
"""

import heapq
import logging
from collections.abc import Callable, Iterable
from typing import Final

from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import parent_dir
from storage.waits import PAUSE, call

_log = logging.getLogger(__name__)

_FILES_A_CALL: Final = 256

Failures = list[tuple[str, OSError]]


def _remove_all(remove: Callable[[str], None], paths: Iterable[str]) -> Failures:
    """Call `remove` with each path; returns those that failed. In any thread."""
    failures: Failures = []
    for path in paths:
        try:
            remove(path)
        except FileNotFoundError:
            continue  # its directory was renamed or removed
        except OSError as error:
            failures.append((path, error))
        else:
            _log.debug("Deleted %s", path)
    return failures


class Deletions:
    """The files and directories that wait to be removed. Times are milliseconds."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        directories: LogDirectories,
        table: LogTable,
        *,
        delay_ms: int,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._log_dirs = directories
        self._table = table
        self.delay_ms = delay_ms
        """`log.segment.delete.delay.ms`; may be changed at any time."""
        self._directories: list[tuple[int, str]] = []
        self._files: list[tuple[int, str]] = []
        """Both are heaps of (when due, path)."""

    def add_log(self, directory: str) -> None:
        """Take over the `-delete` directory of a log that is out of service."""
        heapq.heappush(self._directories, (self._clock.wall_ms() + self.delay_ms, directory))

    def add_leftovers(self, directories: Iterable[str]) -> None:
        """Take over `-delete` directories that a start has found: due at once."""
        now = self._clock.wall_ms()
        for directory in directories:
            heapq.heappush(self._directories, (now, directory))

    def collect(self, log: Log) -> None:
        """Take over the files that the log has renamed."""
        for pending in log.store.take_pending():
            heapq.heappush(self._files, (pending.due_ms, pending.path))

    async def remove_due(self) -> int:
        """Remove what is due; returns the milliseconds until the next is, at most `delay_ms`."""
        for log in self._table.everything():
            self.collect(log)
            await PAUSE
        now = self._clock.wall_ms()
        await self._remove(self._fs.remove_tree, self._directories, now, 1)
        await self._remove(self._fs.unlink, self._files, now, _FILES_A_CALL)
        delay = max(self.delay_ms, 1)
        for waiting in (self._directories, self._files):
            if waiting:
                delay = min(delay, waiting[0][0] - now)
        return max(delay, 1)

    async def _remove(
        self, remove: Callable[[str], None], waiting: list[tuple[int, str]], now_ms: int, most: int
    ) -> None:
        """Remove what is due of `waiting`, `most` paths in a call."""
        while paths := _pop_due(waiting, now_ms, most):
            for path, error in await call(_remove_all, remove, paths):
                self._failed(path, error)
            await PAUSE

    def _failed(self, path: str, error: OSError) -> None:
        _log.error("Exception while deleting %s: %s", path, error)
        log_dirs = self._log_dirs.paths
        owner = next((d for d in log_dirs if path.startswith(d + "/")), parent_dir(path))
        self._log_dirs.report_failure(owner, error)


def _pop_due(waiting: list[tuple[int, str]], now_ms: int, most: int) -> tuple[str, ...]:
    """Take up to `most` due paths out of a heap of (when due, path)."""
    due: list[str] = []
    while waiting and waiting[0][0] <= now_ms and len(due) < most:
        due.append(heapq.heappop(waiting)[1])
    return tuple(due)
