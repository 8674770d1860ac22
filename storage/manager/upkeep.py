"""Expiry in all logs: of segments by retention (S-RET-1), and of silent producers (S-IDEM-2).

Both change state that appends and reads use, so they run on the loop.
"""

import logging
from collections.abc import Callable

from protocol.records.errors import RecordsError
from storage.clock import Clock
from storage.errors import StorageError
from storage.log.log import Log
from storage.manager.deletions import Deletions
from storage.manager.log_table import LogTable
from storage.waits import PAUSE

_log = logging.getLogger(__name__)


class Upkeep:
    """Retention and the expiry of producers, over all logs."""

    def __init__(self, table: LogTable, deletions: Deletions, clock: Clock) -> None:
        self._table = table
        self._deletions = deletions
        self._clock = clock

    async def apply_retention(self, concerns: Callable[[Log], bool]) -> None:
        """Delete old segments of every log for which `concerns` is true (`SegmentDeleter`).

        As in Kafka, the cleaner threads do this for compacted logs, the retention task for others.
        """
        for log in self._table.logs.copy().values():
            await PAUSE
            if not self._table.holds(log) or not concerns(log):
                continue
            try:
                log.delete_old_segments()
            except (StorageError, RecordsError) as error:
                _log.error("Error while deleting segments for %s: %s", log.topic_partition, error)
            self._deletions.collect(log)

    async def remove_expired_producers(self) -> None:
        """Forget producers that were silent for `producer.id.expiration.ms`."""
        for log in self._table.logs.copy().values():
            await log.producers.expire(self._clock.wall_ms())
            await PAUSE
