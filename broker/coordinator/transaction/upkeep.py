"""What the transaction coordinator does on its own as time goes by.

In rounds, one partition after the other, so that the event loop has its turn in between:

* Open transactions that outlived their timeout are aborted, every
  `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
* Ids that were at rest for `transactional.id.expiration.ms` are forgotten, every
  `transaction.remove.expired.transaction.cleanup.interval.ms`.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.changes import Changes
from broker.coordinator.transaction.settings import Counters, TransactionSettings
from broker.coordinator.transaction.shard import TransactionShard
from broker.deadlines import Deadlines, Handle
from storage.clock import Clock

logger = logging.getLogger(__name__)

ROUND_PAUSE_S: Final = 0.02
"""Between two partitions of a round: a look at twenty thousand ids takes that long."""
TOMBSTONES_PER_BATCH: Final = 1_000
"""A batch of tombstones stays far below max.message.bytes, whatever the ids."""

_Look = Callable[[TransactionShard], None]


class Upkeep:
    """See the module."""

    def __init__(
        self,
        settings: TransactionSettings,
        runtime: CoordinatorRuntime[TransactionShard],
        changes: Changes,
        deadlines: Deadlines,
        clock: Clock,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._changes = changes
        self._deadlines = deadlines
        self._clock = clock
        self._counters = counters
        self._rounds: dict[_Look, Handle] = {}

    def start(self) -> None:
        """The first rounds begin after their intervals."""
        settings = self._settings
        self._schedule(settings.abort_timed_out_interval_ms, self._abort_timed_out)
        self._schedule(settings.remove_expired_interval_ms, self._remove_expired)

    def stop(self) -> None:
        """No more rounds."""
        for handle in self._rounds.values():
            handle.cancel()

    def _schedule(self, period_ms: int, look: _Look) -> None:
        self._rounds[look] = self._deadlines.schedule(
            period_ms / 1000, partial(self._begin, period_ms, look)
        )

    def _begin(self, period_ms: int, look: _Look) -> None:
        self._schedule(period_ms, look)
        for turn, (partition, shard) in enumerate(self._runtime.active()):
            self._deadlines.schedule(
                turn * ROUND_PAUSE_S, partial(self._look_at, partition, shard, look)
            )

    def _look_at(self, partition: int, shard: TransactionShard, look: _Look) -> None:
        if self._runtime.is_current(partition, shard):
            look(shard)

    def _abort_timed_out(self, shard: TransactionShard) -> None:
        now = self._clock.wall_ms()
        late = [one for one in shard.transactions.values() if decisions.is_timed_out(one, now)]
        for transaction in late:
            logger.info("%r outlived its timeout and is aborted", transaction)
            self._counters.timed_out += 1
            self._changes.fence(shard, transaction, lambda code: None)

    def _remove_expired(self, shard: TransactionShard) -> None:
        now = self._clock.wall_ms()
        expiration_ms = self._settings.id_expiration_ms
        expired = [
            one
            for one in shard.transactions.values()
            if decisions.is_expired(one, now, expiration_ms)
        ]
        for start in range(0, len(expired), TOMBSTONES_PER_BATCH):
            self._changes.forget(shard, expired[start : start + TOMBSTONES_PER_BATCH])
