"""Completes a prepared transaction: writes its markers, then the record that it is complete.

Begun for each transaction that a replay found prepared (`TransactionShard.take_prepared`). If the
shard has been resigned or its topic deleted, nothing is done: the next coordinator finds the same
prepared transaction in the log and completes it.
"""

from itertools import count

from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.transaction.markers import (
    MarkerDispatcher,
    MarkerStatistics,
    WorkKey,
    retry_delay_s,
)
from broker.coordinator.transaction.shard import TransactionDecision, TransactionShard
from broker.coordinator.transaction.state import TransactionState
from broker.deadlines import Deadlines
from protocol.errors import ErrorCode
from storage.clock import Clock


class Completion:
    """Carries out the decision of an EndTxn, a fence or a timeout, however long it takes."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard, TransactionDecision],
        markers: MarkerWriter,
        deadlines: Deadlines,
        clock: Clock,
    ) -> None:
        self._runtime = runtime
        self._markers = MarkerDispatcher(markers, deadlines)
        self._deadlines = deadlines
        self._clock = clock

    async def complete(self, shard: TransactionShard, transactional_id: str) -> None:
        """Write the markers of a prepared transaction, then the record. To be begun within the turn
        that found it prepared."""
        value = shard.transactions[transactional_id].value
        marker = Marker(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            coordinator_epoch=self._runtime.epoch(shard.partition),
            commit=value.state is TransactionState.PREPARE_COMMIT,
            transaction_version=value.client_version,
        )
        key = WorkKey(shard.partition, transactional_id)
        written = await self._markers.write(key, marker, value.partitions)
        for attempt in count():
            if not written or not self._runtime.is_current(shard):
                return
            out = TransactionDecision()
            shard.complete(shard.transactions[transactional_id], self._clock.wall_ms(), out)
            if await self._runtime.carry_out(shard, out) is ErrorCode.NONE:
                return
            await self._deadlines.sleep(retry_delay_s(attempt))

    def close(self, shard: TransactionShard) -> None:
        """The shard is no longer served: stop, as the next coordinator writes its markers."""
        self._markers.cancel_all(shard.partition)

    def statistics(self) -> MarkerStatistics:
        """Statistics of the markers."""
        return self._markers.statistics()
