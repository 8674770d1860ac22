"""Syncing logs in the background: soon after a roll (S-ROLL-4), and by `flush.ms` (S-FL-1).

Logs are synced one after the other: parallel syncs would only make appends wait for the disk.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from storage.clock import Clock
from storage.errors import StorageError
from storage.jobs import Job, Steps, Watched
from storage.log.log import Log
from storage.manager.log_table import LogTable

_log = logging.getLogger(__name__)

_LOGS_A_TURN: Final = 1000
"""Logs checked before other tasks have their turn: a few hundred microseconds."""


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

    def flush_rolled(self) -> Steps:
        """Sync the logs that rolled, each up to its new segment."""
        while self._rolled:
            log, offset = self._rolled.popleft()
            yield self._flush(log, offset)
        return None

    def settle(self, log: Log, *, is_idle: bool) -> Steps:
        """Sync a whole log, so that a start need not read it, then the logs that rolled meanwhile.

        `is_idle`: nothing is appended to it at the moment (`Log.begin_settle`).
        """
        try:
            job = log.begin_settle() if is_idle else log.begin_flush()
        except StorageError as error:
            logged("Error flushing", log)(error)
        else:
            if job is not None:
                yield Watched(job, failed=logged("Error flushing", log))
        yield from self.flush_rolled()
        return None

    def flush_due(self) -> Steps:
        """Sync every log whose last sync is `flush.ms` ago."""
        now = self._clock.wall_ms()
        for count, log in enumerate(self._table.everything(), start=1):
            if now - log.durability.last_flush_ms >= log.config.flush_ms:
                yield self._flush(log, None)
            elif count % _LOGS_A_TURN == 0:
                yield None
        return None

    def _flush(self, log: Log, offset: int | None) -> Job[OSError | None] | None:
        job = log.begin_flush(offset)
        return None if job is None else Watched(job, failed=logged("Error flushing", log))


def logged(what: str, log: Log) -> Callable[[StorageError], None]:
    """A callback that logs one log's failure, so that a task goes on with the others; the log has
    reported its directory already."""

    def failed(error: StorageError) -> None:
        _log.error("%s %s: %s", what, log.topic_partition, error)

    return failed
