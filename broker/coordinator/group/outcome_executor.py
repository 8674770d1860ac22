"""Carries out what decisions ask for: sets timers, gives answers, writes records, replays them.

The order is `outcome.py`'s. A shard that is not the partition's any more (the leader changed while
a write or a timer was under way) is left alone.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from broker.coordinator.group.offsets_topic import OFFSETS_TOPIC, OffsetsTopic
from broker.coordinator.group.outcome import Outcome, Timer
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import Counters
from broker.coordinator.group.stored import GroupMetadataRecord, GroupRecord
from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.timers import Timers
from broker.coordinator.write_codes import response_code
from protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

TOMBSTONES_PER_BATCH = 1_000
"""A batch of tombstones stays far below max.message.bytes, whatever the names."""


class OutcomeExecutor:
    """The runtime of group decisions: it does, in order, what an `Outcome` asks for."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        topic: OffsetsTopic,
        timers: Timers,
        counters: Counters,
    ) -> None:
        self._runtime = runtime
        self._topic = topic
        self._timers = timers
        self._counters = counters

    def carry_out(self, partition: int, shard: GroupShard, out: Outcome) -> None:
        """Do what the outcome of a decision asks for."""
        for key, timer in out.timers.items():
            if timer is None:
                self._timers.cancel(key)
            else:
                self._timers.schedule(
                    key, timer.delay_ms / 1000, partial(self._on_timer, partition, shard, timer)
                )
        for reason in out.rebalances:
            counts = self._counters.rebalances
            counts[reason.value] = counts.get(reason.value, 0) + 1
        self._counters.completed_rebalances += out.completed_rebalances
        for answer, reply in out.answers:
            answer(reply)
        if out.records:
            self._topic.append(
                partition, out.records, partial(self._written, partition, shard, out)
            )

    def _written(
        self, partition: int, shard: GroupShard, out: Outcome, code: ErrorCode, offset: int
    ) -> None:
        if code is not ErrorCode.NONE:
            logger.warning("Writing group metadata to %s-%d: %r", OFFSETS_TOPIC, partition, code)
        if out.after is not None:
            then = Outcome()
            out.after(response_code(code), then)
            self.carry_out(partition, shard, then)

    def _on_timer(self, partition: int, shard: GroupShard, timer: Timer) -> None:
        if self._runtime.is_current(partition, shard):
            out = Outcome()
            shard.groups.on_timer(timer, out)
            self.carry_out(partition, shard, out)

    def replay(
        self, partition: int, shard: GroupShard, records: Sequence[GroupRecord], first_offset: int
    ) -> None:
        """Records have become durable, the first at `first_offset`."""
        if self._runtime.is_current(partition, shard):
            for at, record in enumerate(records):
                shard.replay(record, first_offset + at)

    def write_tombstones(
        self,
        partition: int,
        shard: GroupShard,
        records: Sequence[GroupRecord],
        done: Callable[[ErrorCode], None] = lambda code: None,
    ) -> None:
        """Write tombstones in batches; a group's own comes after those of its offsets.

        `done` gets the first error, or NONE.
        """
        starts = list(range(0, len(records), TOMBSTONES_PER_BATCH))
        left = len(starts)
        first_error = ErrorCode.NONE

        def written(batch: Sequence[GroupRecord], code: ErrorCode, first_offset: int) -> None:
            nonlocal left, first_error
            left -= 1
            if code is ErrorCode.NONE:
                self.replay(partition, shard, batch, first_offset)
            else:
                first_error = first_error or code
                for record in batch:
                    if isinstance(record, GroupMetadataRecord):
                        shard.groups.undo_delete(record.group_id)
            if not left:
                done(response_code(first_error))

        for start in starts:
            batch = records[start : start + TOMBSTONES_PER_BATCH]
            self._topic.append(partition, batch, partial(written, batch))
