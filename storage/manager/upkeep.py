"""Expiry in all logs: of segments by retention (S-RET-1), and of silent producers (S-IDEM-2).

Both change state that appends and reads use, so they run on the loop, a few logs at a time.
"""

import logging
from collections.abc import Callable
from typing import Final

from protocol.records.errors import RecordsError
from storage.clock import Clock
from storage.errors import StorageError
from storage.jobs import Steps
from storage.log.log import Log
from storage.manager.deletions import Deletions
from storage.manager.log_table import LogTable

_log = logging.getLogger(__name__)

_RETENTION_A_TURN: Final = 16
"""Logs per turn: each may open a time index, which takes a few ten microseconds."""
_EXPIRATION_A_TURN: Final = 64


class Upkeep:
    """Retention and the expiry of producers, over all logs, in turns."""

    def __init__(self, table: LogTable, deletions: Deletions, clock: Clock) -> None:
        self._table = table
        self._deletions = deletions
        self._clock = clock

    def apply_retention(self, concerns: Callable[[Log], bool]) -> Steps:
        """Delete old segments of every log for which `concerns` is true (`SegmentDeleter`).

        As in Kafka, the cleaner threads do this for compacted logs, the retention task for others.
        """
        for count, log in enumerate(self._table.logs.copy().values(), start=1):
            if count % _RETENTION_A_TURN == 0:
                yield None
            if not self._table.holds(log) or not concerns(log):
                continue
            try:
                log.delete_old_segments()
            except (StorageError, RecordsError) as error:
                _log.error("Error while deleting segments for %s: %s", log.topic_partition, error)
            self._deletions.collect(log)
        return None

    def remove_expired_producers(self) -> Steps:
        """Forget producers that were silent for `producer.id.expiration.ms`."""
        for count, log in enumerate(self._table.logs.copy().values(), start=1):
            if count % _EXPIRATION_A_TURN == 0:
                yield None
            for step, _ in enumerate(log.producers.expire(self._clock.wall_ms())):
                if step:
                    yield None
        return None
