"""Writes to `__transaction_state` what was decided, and carries it out.

    change         a record, then `done`
    write_markers  the end of a prepared transaction to its partitions, then the completed value
    fence          an open transaction aborted under a raised epoch, then its markers
    forget         tombstones of ids that expired

Nothing is carried out that is not durable. What was begun for a shard that is not the partition's
any more (it was given away, or its topic deleted) is left alone; the next coordinator does it.

Used by the coordinator and its upkeep. Synchronous; `done` is called once, at once when this broker
is alone in the ISR.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.markers import (
    MarkerDispatcher,
    MarkerStatistics,
    WorkKey,
    retry_delay_s,
)
from broker.coordinator.transaction.records import TRANSACTION_TOPIC, encode_key, encode_value
from broker.coordinator.transaction.settings import Counters
from broker.coordinator.transaction.shard import TransactionShard
from broker.coordinator.transaction.state import Transaction, TransactionState, TransactionValue
from broker.coordinator.write_codes import response_code
from broker.deadlines import Deadlines
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.clock import Clock

logger = logging.getLogger(__name__)

Done = Callable[[ErrorCode], None]
"""NONE, or what the client is told."""


class Changes:
    """The one way in which a transactional id's state is written down and then changed."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionShard],
        writer: PartitionWriter,
        markers: MarkerWriter,
        deadlines: Deadlines,
        clock: Clock,
        counters: Counters,
    ) -> None:
        self._runtime = runtime
        self._writer = writer
        self._markers = MarkerDispatcher(markers, deadlines)
        self._deadlines = deadlines
        self._clock = clock
        self._counters = counters

    def change(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        after: TransactionValue,
        done: Done,
    ) -> None:
        """Let the transaction become `after`; when that fails it stays as it is."""
        transaction.begin(after)

        def written(code: ErrorCode, first_offset: int) -> None:
            if code is ErrorCode.NONE:
                transaction.complete()
                self._counters.changes[after.state] += 1
                if not self._runtime.is_current(shard.partition, shard):
                    code = ErrorCode.NOT_COORDINATOR
            else:
                transaction.cancel()
                self._counters.failed_changes += 1
                logger.warning(
                    "%r: writing %s failed: %s", transaction, after.state.label, code.name
                )
            done(response_code(code))

        record = (encode_key(transaction.transactional_id), encode_value(after))
        self._append(shard, [record], written)

    def fence(self, shard: TransactionShard, transaction: Transaction, done: Done) -> None:
        """Abort an open transaction so that its owner cannot go on. Raises KafkaError."""
        after = decisions.fence(transaction, self._clock.wall_ms())

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                transaction.note_failed_fence(after.producer_epoch)
            done(code)
            if code is ErrorCode.NONE:
                self.write_markers(shard, transaction)

        self.change(shard, transaction, after, written)

    def write_markers(self, shard: TransactionShard, transaction: Transaction) -> None:
        """Bring a prepared transaction to its end, however long it takes."""
        value = transaction.value
        marker = Marker(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            coordinator_epoch=self._runtime.epoch(shard.partition),
            commit=value.state is TransactionState.PREPARE_COMMIT,
            transaction_version=value.client_version,
        )
        self._markers.start(
            WorkKey(shard.partition, transaction.transactional_id),
            marker,
            value.partitions,
            partial(self._complete, shard, transaction),
        )

    def _complete(
        self, shard: TransactionShard, transaction: Transaction, attempt: int = 0
    ) -> None:
        """All markers are written; `attempt` counts the times that this could not be recorded."""
        if not self._runtime.is_current(shard.partition, shard):
            return

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                self._deadlines.schedule(
                    retry_delay_s(attempt),
                    partial(self._complete, shard, transaction, attempt + 1),
                )

        now = self._clock.wall_ms()
        self.change(shard, transaction, decisions.completed(transaction.value, now), written)

    def forget(self, shard: TransactionShard, gone: Sequence[Transaction]) -> None:
        """Write tombstones, as one batch; ids whose tombstone cannot be written stay."""
        for transaction in gone:
            transaction.begin(decisions.dead(transaction.value))

        def written(code: ErrorCode, first_offset: int) -> None:
            for transaction in gone:
                transaction.cancel()
                if code is ErrorCode.NONE:
                    shard.transactions.pop(transaction.transactional_id, None)
            if code is ErrorCode.NONE:
                self._counters.expired_ids += len(gone)

        self._append(shard, [(encode_key(one.transactional_id), None) for one in gone], written)

    def close(self, shard: TransactionShard) -> None:
        """The shard is not served any more: another coordinator writes its markers."""
        self._markers.cancel_all(shard.partition)

    def statistics(self) -> MarkerStatistics:
        """Of the markers."""
        return self._markers.statistics()

    def _append(
        self,
        shard: TransactionShard,
        records: Sequence[tuple[bytes, bytes | None]],
        written: Callable[[ErrorCode, int], None],
    ) -> None:
        now = self._clock.wall_ms()
        batch = build_batch([(now, key, value, ()) for key, value in records])
        self._writer.append(TopicPartition(TRANSACTION_TOPIC, shard.partition), batch, written)
