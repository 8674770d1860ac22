"""Syncing logs in the background: soon after a roll (S-ROLL-4), and by `flush.ms` (S-FL-1).

Logs are synced one after the other: parallel syncs would only make appends wait for the disk.
"""

import logging
from collections import deque

from storage.clock import Clock
from storage.errors import StorageError
from storage.log.log import Log
from storage.manager.log_table import LogTable
from storage.waits import PAUSE, Work

_log = logging.getLogger(__name__)


class Flusher:
    """Syncs the logs whose segments rolled, and those whose `flush.ms` is over."""

    def __init__(self, table: LogTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._rolled: deque[tuple[Log, int]] = deque()
        """(log, offset below which it is to be synced)."""

    def note_rolled(self, log: Log, offset: int) -> None:
        """Note that a segment was started at `offset`: everything below is to be synced."""
        self._rolled.append((log, offset))

    def forget(self, log: Log) -> None:
        """Drop a log that was deleted or replaced."""
        self._rolled = deque(entry for entry in self._rolled if entry[0] is not log)

    @property
    def rolled(self) -> int:
        """How many rolls wait for their sync."""
        return len(self._rolled)

    async def flush_rolled(self) -> None:
        """Sync the logs that rolled, each up to its new segment."""
        while self._rolled:
            log, offset = self._rolled.popleft()
            await _logged(log, log.flush(offset))
            await PAUSE

    async def settle(self, log: Log, *, is_idle: bool) -> None:
        """Sync a whole log, so that a start need not read it, then the logs that rolled meanwhile.

        `is_idle`: nothing is appended to it at the moment (`Log.settle`).
        """
        await _logged(log, log.settle() if is_idle else log.flush())
        await PAUSE
        await self.flush_rolled()

    async def flush_due(self) -> None:
        """Sync every log whose last sync is `flush.ms` ago."""
        now = self._clock.wall_ms()
        for log in self._table.everything():
            if now - log.durability.last_flush_ms >= log.config.flush_ms:
                await _logged(log, log.flush())
            await PAUSE


async def _logged(log: Log, flush: Work[None]) -> None:
    """Log a failed flush, so that the task flushes the other logs; the directory was reported."""
    try:
        await flush
    except StorageError as error:
        _log.error("Error flushing %s: %s", log.topic_partition, error)
