"""Log lines of a fetcher about its partitions, gathered into one line for each reason.

An election concerns all partitions of a leader at once, so its last answers refuse hundreds. The
lines have Kafka's levels: a refusal that every failover brings is no error.

Source: `AbstractFetcherThread.processFetchRequest`, `onPartitionFenced` (3.9).
"""

import logging
from typing import Final

from protocol.errors import ErrorCode
from protocol.types import TopicPartition

log = logging.getLogger(__name__)

_LEVELS: Final = {
    ErrorCode.NONE: logging.INFO,
    ErrorCode.FENCED_LEADER_EPOCH: logging.INFO,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: logging.DEBUG,
    ErrorCode.UNKNOWN_LEADER_EPOCH: logging.DEBUG,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: logging.WARNING,
    ErrorCode.UNKNOWN_TOPIC_ID: logging.WARNING,
    ErrorCode.INCONSISTENT_TOPIC_ID: logging.WARNING,
}
"""All other codes are logged as errors."""
_MOST_NAMED: Final = 20
"""Partitions that a line names."""


class Notices:
    """Gathers what `tell` writes."""

    def __init__(self) -> None:
        self._gathered: dict[tuple[int, str], list[TopicPartition]] = {}

    def add(self, tp: TopicPartition, code: int, what: str) -> None:
        """Gather `what` about a partition, at the level of the error `code`, which may be NONE."""
        level = _LEVELS.get(ErrorCode(code), logging.ERROR)
        if log.isEnabledFor(level):
            self._gathered.setdefault((level, what), []).append(tp)

    def tell(self) -> None:
        """Write a line for each reason, with the partitions that it holds for."""
        gathered, self._gathered = self._gathered, {}
        for (level, what), partitions in gathered.items():
            named = ", ".join(map(str, partitions[:_MOST_NAMED]))
            more = ", …" if len(partitions) > _MOST_NAMED else ""
            log.log(level, "%d partitions %s: %s%s", len(partitions), what, named, more)
