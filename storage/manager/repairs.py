"""The queue of indexes in doubt, which are rebuilt one after another, and a count of damaged ones.

A log reports an index in doubt (`storage.log.mending`), which wakes the background task. The task
has a worker rebuild the index, and then wakes the requests that wait for the records.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable

from protocol.types import TopicPartition
from storage.errors import IndexInDoubt, IndexKind, StorageError
from storage.jobs import Steps, Watched
from storage.log.log import Log

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

    def repair(self) -> Steps:
        """Rebuild all queued indexes, in steps."""
        while self._waiting:
            log, doubt = self._waiting.popleft()
            job = log.begin_index_repair(doubt)
            if job is None:
                continue

            def failed(error: StorageError, log: Log = log) -> None:
                _log.error("An index of %s could not be rebuilt: %s", log.topic_partition, error)

            yield Watched(job, failed=failed)
            self.repaired(log.topic_partition)
        return None


def _nothing() -> None:
    """The default of `_begin_soon`."""


def _nobody(_: TopicPartition) -> None:
    """The default of `repaired`."""
