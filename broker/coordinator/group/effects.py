"""What group decisions have done beside records and answers: timers set, rebalances counted."""

import logging
from collections.abc import Callable
from functools import partial
from typing import assert_never

from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
)
from broker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from broker.coordinator.group.outcome import Outcome, Timer
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import Counters
from broker.coordinator.runtime.decision import Write
from broker.coordinator.timers import Timers
from protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class GroupEffects:
    """Performs them for the runtime, and counts what was written."""

    def __init__(
        self,
        timers: Timers,
        counters: Counters,
        on_timer: Callable[[GroupShard, Timer], None],
    ) -> None:
        self._timers = timers
        self._counters = counters
        self._on_timer = on_timer

    def perform(self, shard: GroupShard, out: Outcome) -> None:
        """What does not depend on a write."""
        for key, timer in out.timers.items():
            if timer is None:
                self._timers.cancel(key)
            else:
                self._timers.schedule(
                    key, timer.delay_ms / 1000, partial(self._on_timer, shard, timer)
                )
        for reason in out.rebalances:
            counts = self._counters.rebalances
            counts[reason.value] = counts.get(reason.value, 0) + 1
        if out.completed_rebalances:
            self._counters.completed_rebalances += out.completed_rebalances

    def on_settled(self, shard: GroupShard, write: Write[GroupRecord], code: ErrorCode) -> None:
        """A write has ended."""
        records, counters = write.records, self._counters
        failed = code is not ErrorCode.NONE
        first = records[0]
        if isinstance(first, OffsetRecord):
            if first.committed is None:
                return  # Tombstones are counted by whoever asked for them.
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
