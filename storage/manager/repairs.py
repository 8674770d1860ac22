"""The queue of indexes in doubt, which are rebuilt one after another, and a count of damaged ones.

A log reports an index in doubt (`storage.log.mending`), which wakes the background task. The task
has the index rebuilt, and then wakes the requests that wait for the records.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable

from protocol.types import TopicPartition
from storage.errors import IndexInDoubt, IndexKind, StorageError
from storage.log.log import Log
from storage.waits import PAUSE

_log = logging.getLogger(__name__)


class Repairs:
    """The queue of indexes to be rebuilt, and the count of those that were damaged."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Log, IndexInDoubt]] = deque()
        self._found: Counter[str] = Counter()
        self.repaired: Callable[[TopicPartition], None] = _nobody
        """Called when the records of a partition may be read again."""
        self._begin_soon: Callable[[], None] = _nothing

    @property
    def found(self) -> dict[str, int]:
        """Damaged indexes since the start, by kind."""
        return dict(self._found)

    def hurry(self, begin_soon: Callable[[], None]) -> None:
        """Call `begin_soon` from now on whenever a repair is noted, as requests may wait for it."""
        self._begin_soon = begin_soon

    def note(self, log: Log, doubt: IndexInDoubt) -> None:
        """Queue an index of `log` that has to be compared with the log."""
        self._waiting.append((log, doubt))
        self._begin_soon()

    def count(self, kind: IndexKind) -> None:
        """Count a damaged index."""
        self._found[kind.value] += 1

    async def repair(self) -> None:
        """Rebuild all queued indexes, one after another."""
        while self._waiting:
            log, doubt = self._waiting.popleft()
            try:
                has_changed = await log.repair_index(doubt)
            except StorageError as error:
                _log.error("An index of %s could not be rebuilt: %s", log.topic_partition, error)
                has_changed = True
            await PAUSE
            if has_changed:
                self.repaired(log.topic_partition)


def _nothing() -> None:
    """The default of `_begin_soon`."""


def _nobody(_: TopicPartition) -> None:
    """The default of `repaired`."""
