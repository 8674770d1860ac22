"""Counts the writes to `__consumer_offsets`, successful and failed."""

import logging
from typing import assert_never

from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
)
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import GroupCounters
from broker.coordinator.runtime.decision import Write
from protocol.errors import ErrorCode
from protocol.types import OFFSETS_TOPIC

logger = logging.getLogger(__name__)


class WriteCounts:
    """Counts the records of each write when it has ended."""

    def __init__(self, counters: GroupCounters) -> None:
        self._counters = counters

    def on_settled(self, shard: GroupShard, write: Write[GroupRecord], code: ErrorCode) -> None:
        """A write has ended with `code`."""
        records, counters = write.records, self._counters
        failed = code is not ErrorCode.NONE
        first = records[0]
        if isinstance(first, OffsetRecord):
            if first.committed is None:
                return  # Tombstones are counted where they are requested.
            if failed:
                counters.commit_failures += len(records)
            else:
                counters.commits += len(records)
        elif isinstance(first, PendingOffsetRecord):
            if failed:
                counters.commit_failures += len(records)
            else:
                counters.transactional_commits += len(records)
        elif isinstance(first, GroupMetadataRecord):
            if failed:
                logger.warning(
                    "Writing group metadata to %s-%d: %r", OFFSETS_TOPIC, shard.partition, code
                )
        else:
            assert_never(first)
