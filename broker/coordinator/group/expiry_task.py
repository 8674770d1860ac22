"""Deletes expired offsets and groups every `offsets.retention.check.interval.ms` (S-GRP-4)."""

import logging
from functools import partial

from broker.coordinator.group.data.records import OffsetRecord
from broker.coordinator.group.decision import GroupDecision
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import GroupCounters
from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.deadlines import Deadlines, Handle
from protocol.types import OFFSETS_TOPIC

logger = logging.getLogger(__name__)

EXPIRY_PAUSE_S = 0.02
"""Between the expiry of two partitions: checking twenty thousand offsets takes that long."""


class ExpiryTask:
    """Deletes, partition by partition, expired offsets and empty groups without offsets."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard, GroupDecision],
        deadlines: Deadlines,
        counters: GroupCounters,
        *,
        interval_ms: int,
    ) -> None:
        self._runtime = runtime
        self._deadlines = deadlines
        self._counters = counters
        self._interval_ms = interval_ms
        self._next: Handle | None = None

    def start(self) -> None:
        """Schedule the next round, one interval from now."""
        self._next = self._deadlines.schedule(self._interval_ms / 1000, self._expire)

    def stop(self) -> None:
        """Cancel the next round."""
        if self._next is not None:
            self._next.cancel()

    def _expire(self) -> None:
        """Begin a round: one partition after the other, with pauses for the event loop."""
        self.start()
        for turn, shard in enumerate(self._runtime.active()):
            self._deadlines.schedule(turn * EXPIRY_PAUSE_S, partial(self._expire_partition, shard))

    def _expire_partition(self, shard: GroupShard) -> None:
        if not self._runtime.is_current(shard):
            return
        out = GroupDecision()
        shard.expire(out)
        if out.writing is not None:
            records = out.writing.records
            self._counters.expired_offsets += sum(isinstance(one, OffsetRecord) for one in records)
            logger.info("%s-%d: %d records expired", OFFSETS_TOPIC, shard.partition, len(records))
        self._runtime.carry_out(shard, out)
