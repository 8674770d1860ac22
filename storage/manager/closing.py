"""Stopping in order (S-START-5): all logs synced and closed, checkpoints, the clean-stop marker.

A directory where a close failed gets no marker, nor one whose start after an unclean stop did not
finish loading: the next start recovers it.
"""

import logging
from functools import partial
from random import Random
from typing import Any, Final

from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.jobs import Job, Steps, Watched
from storage.log.log import Log
from storage.manager.checkpoints import Checkpoints
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import CLEAN_SHUTDOWN_FILE, join
from storage.replaced_file import ReplacedFile, ReplaceJob

_log = logging.getLogger(__name__)

_SIDE_BY_SIDE: Final = 64
"""How many logs sync at the same time: together they cost the disk little more than one sync."""


class Closing:
    """The orderly stop of all logs, in steps."""

    def __init__(
        self,
        fs: FileSystem,
        random: Random,
        directories: LogDirectories,
        table: LogTable,
        checkpoints: Checkpoints,
    ) -> None:
        self._fs = fs
        self._random = random
        self._directories = directories
        self._table = table
        self._checkpoints = checkpoints
        self._failed: set[str] = set()
        """Log directories where a log could not be closed."""

    def steps(self, broker_epoch: int) -> Steps:
        """Close all logs, directory by directory. Nobody may use the logs any more."""
        for log_dir in list(self._directories.live):
            yield from self._close_logs(log_dir)
            if log_dir in self._failed:
                continue
            yield from self._checkpoints.steps((log_dir,))
            state = self._directories.live.get(log_dir)
            if state is not None and (state.loaded or state.was_clean):
                yield self._mark(log_dir, state.log_dir.clean_shutdown_marker(broker_epoch))
        self._table.clear()
        return None

    def _close_logs(self, log_dir: str) -> Steps:
        jobs: list[Job[Any]] = []
        for log in self._table.in_dir(log_dir):
            job = self._begin_close(log_dir, log)
            if job is not None:
                jobs.append(job)
            if len(jobs) == _SIDE_BY_SIDE:
                yield jobs
                jobs = []
        if jobs:
            yield jobs
        return None

    def _begin_close(self, log_dir: str, log: Log) -> Job[Any] | None:
        failed = partial(self._not_closed, log_dir)
        try:
            job = log.begin_close()
        except StorageError as error:
            failed(error)
            return None
        return None if job is None else Watched(job, failed=failed)

    def _not_closed(self, log_dir: str, error: StorageError) -> None:
        _log.error("Error while closing logs in %s: %s", log_dir, error)
        self._failed.add(log_dir)

    def _mark(self, log_dir: str, marker: bytes) -> ReplaceJob:
        file = ReplacedFile(self._fs, join(log_dir, CLEAN_SHUTDOWN_FILE), self._random)
        return ReplaceJob(file.begin(lambda: marker), partial(_marked, log_dir))


def _marked(log_dir: str, error: OSError | None) -> None:
    if error is not None:
        _log.error("No clean shutdown marker in %s: %s", log_dir, error)
