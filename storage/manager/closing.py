"""Stopping in order (S-START-5): all logs synced and closed, checkpoints, the clean-stop marker.

A directory where a close failed gets no marker, nor one whose start after an unclean stop did not
finish loading: the next start recovers it. Checkpoints of a directory that was not loaded stay as
they are, because nobody knows the offsets of the logs in it.
"""

import logging
from collections import deque
from random import Random
from typing import Final

from storage.errors import StorageError
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.manager.checkpoints import Checkpoints
from storage.manager.directories import LogDirectories
from storage.manager.log_table import LogTable
from storage.paths import CLEAN_SHUTDOWN_FILE, join
from storage.replaced_file import ReplacedFile
from storage.waits import PAUSE, together

_log = logging.getLogger(__name__)

_SIDE_BY_SIDE: Final = 64
"""How many logs sync at the same time: together they cost the disk little more than one sync."""


class Closing:
    """The orderly stop of all logs."""

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

    async def close(self, broker_epoch: int) -> None:
        """Close all logs, directory by directory. Nobody may use the logs any more."""
        for log_dir in list(self._directories.live):
            logs = deque(self._table.in_dir(log_dir))
            await together(*(self._close_logs(log_dir, logs) for _ in range(_SIDE_BY_SIDE)))
            if log_dir in self._failed:
                continue
            state = self._directories.live.get(log_dir)
            if state is not None and state.loaded:
                await self._checkpoints.write((log_dir,))
                state = self._directories.live.get(log_dir)
            if state is not None and (state.loaded or state.was_clean):
                await self._mark(log_dir, state.log_dir.clean_shutdown_marker(broker_epoch))
        self._table.clear()

    async def _close_logs(self, log_dir: str, logs: deque[Log]) -> None:
        """Close logs until none is left."""
        while logs:
            try:
                await logs.popleft().close()
            except StorageError as error:
                _log.error("Error while closing logs in %s: %s", log_dir, error)
                self._failed.add(log_dir)
            await PAUSE

    async def _mark(self, log_dir: str, marker: bytes) -> None:
        file = ReplacedFile(self._fs, join(log_dir, CLEAN_SHUTDOWN_FILE), self._random)
        try:
            await file.begin(lambda: marker).finish()
        except OSError as error:
            _log.error("No clean shutdown marker in %s: %s", log_dir, error)
