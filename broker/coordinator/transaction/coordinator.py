"""The transaction coordinator: carries out what `decisions.py` decides.

It finds the partition a transactional id belongs to, lets a request be decided, writes the new
value to `__transaction_state`, answers, and has the markers written. All methods are synchronous;
`done` is called once, at once when this broker is alone in the ISR.

* The answer to EndTxn comes when the decision is durable, before the markers: from then on nothing
  can change it, a restart included (S-TXN-6).
* Requests to a partition that is not served here raise KafkaError: COORDINATOR_LOAD_IN_PROGRESS,
  NOT_COORDINATOR; before `startup` and after `shutdown`: COORDINATOR_NOT_AVAILABLE.
* What has a timeout is looked at in rounds: open transactions every
  `transaction.abort.timed.out.transaction.cleanup.interval.ms`, ids at rest every
  `transaction.remove.expired.transaction.cleanup.interval.ms`.

Called by the handlers in `broker/api`, wired by `broker/server`. After
`kafka.coordinator.transaction`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

import trio

from broker.coordinator.hashing import coordinator_partition
from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.decisions import AlreadyDone, MustFence, Producer
from broker.coordinator.transaction.markers import MarkerDispatcher, retry_delay_s
from broker.coordinator.transaction.records import encode_key, encode_value
from broker.coordinator.transaction.settings import (
    Counters,
    TransactionSettings,
    TransactionStatistics,
)
from broker.coordinator.transaction.shard import TransactionShard
from broker.coordinator.transaction.state import (
    PREPARED,
    Transaction,
    TransactionState,
    TransactionValue,
)
from broker.deadlines import Deadlines, Handle
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from storage.clock import Clock

logger = logging.getLogger(__name__)

TRANSACTION_TOPIC: Final = "__transaction_state"
TOMBSTONES_PER_BATCH: Final = 1_000
ROUND_PAUSE_S: Final = 0.02
"""Between two partitions of a round: a look at twenty thousand ids takes that long."""

_RESPONSE_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the write failed: the cause is not its business."""

OwnerDone = Callable[[ErrorCode, int, int], None]
"""(code, producer id, epoch) that the owner goes on with; -1 and -1 with an error."""
Done = Callable[[ErrorCode], None]


class ProducerIds(Protocol):
    """What is needed of `broker.cluster.producer_ids.ProducerIdAllocator`."""

    def next_id(self) -> int:
        """The next id. Raises KafkaError when none is at hand."""
        ...

    def note_used(self, producer_id: int) -> None:
        """This one was found in the log: ids go on above it."""
        ...


class TransactionCoordinator:
    """See the module."""

    def __init__(
        self,
        settings: TransactionSettings,
        writer: PartitionWriter,
        markers: MarkerWriter,
        deadlines: Deadlines,
        clock: Clock,
        producer_ids: ProducerIds,
    ) -> None:
        self.settings = settings
        self._writer = writer
        self._deadlines = deadlines
        self._clock = clock
        self._producer_ids = producer_ids
        self._new_producer_id = producer_ids.next_id
        self._markers = MarkerDispatcher(markers, deadlines)
        self._runtime = CoordinatorRuntime[TransactionShard](
            TRANSACTION_TOPIC,
            writer,
            clock,
            new_shard=TransactionShard,
            on_active=self._on_active,
            slice_bytes=settings.load_buffer_bytes,
        )
        self._counters = Counters()
        self._partition_count = settings.partition_count
        self._rounds: list[Handle] = []
        self._open = False

    # ---- life

    def startup(
        self, partitions: Iterable[tuple[int, int]] = (), *, partition_count: int | None = None
    ) -> None:
        """Begin to serve; `partitions` of the topic are led here: (index, leader epoch).

        `partition_count` is what the topic really has, if it is there already: an id stays where
        it is, also after somebody changed transaction.state.log.num.partitions.
        """
        self._open = True
        if partition_count is not None:
            self._partition_count = partition_count
        settings = self.settings
        self._begin_rounds(settings.abort_timed_out_interval_ms, self._abort_timed_out, 0)
        self._begin_rounds(settings.remove_expired_interval_ms, self._remove_expired, 1)
        for partition, leader_epoch in partitions:
            self.on_elected(partition, leader_epoch)

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """The task that loads partitions, until cancelled."""
        await self._runtime.run(task_status=task_status)

    def shutdown(self) -> None:
        """Serve no more. Markers that are not written yet are written after the next start."""
        self._open = False
        for handle in self._rounds:
            handle.cancel()
        for partition, _ in list(self._runtime.active()):
            self.on_resigned(partition)

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition of the topic from now on."""
        replaced = self._runtime.elect(partition, leader_epoch)
        if replaced is not None:
            self._close(replaced)

    def on_resigned(self, partition: int) -> None:
        """This broker leads it no more."""
        shard = self._runtime.resign(partition)
        if shard is not None:
            self._close(shard)

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """If `__transaction_state` is gone, so are all transactions."""
        if TRANSACTION_TOPIC in topics:
            for _, shard in self._runtime.resign_all():
                self._close(shard)
            self._partition_count = self.settings.partition_count

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` an id belongs to."""
        return coordinator_partition(transactional_id, self._partition_count)

    def _on_active(self, partition: int, shard: TransactionShard) -> None:
        """What was decided before the restart is carried out now (S-TXN-6)."""
        for transaction in list(shard.transactions.values()):
            value = transaction.value
            self._producer_ids.note_used(max(value.producer_id, value.next_producer_id))
            if transaction.state in PREPARED:
                self._write_markers(shard, transaction)

    def _close(self, shard: TransactionShard) -> None:
        for transactional_id in shard.transactions:
            self._markers.cancel((shard.partition, transactional_id))

    def _shard_of(self, transactional_id: str) -> TransactionShard:
        if not self._open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._runtime.shard(self.partition_for(transactional_id))

    def _find(self, transactional_id: str | None) -> tuple[TransactionShard, Transaction]:
        """Raises KafkaError, INVALID_PRODUCER_ID_MAPPING for an id that is not known."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        shard = self._shard_of(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return shard, transaction

    # ---- requests

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        done: OwnerDone,
    ) -> None:
        """InitProducerId of a transactional producer. Raises KafkaError.

        A transaction that is still open is aborted, and the caller told CONCURRENT_TRANSACTIONS:
        when it asks again it becomes the owner.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.settings.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        shard = self._shard_of(transactional_id)
        now = self._clock.wall_ms()
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            value = decisions.new_transaction(self._new_producer_id(), timeout_ms, now)
            transaction = Transaction(transactional_id, value)
        try:
            after = decisions.init_producer(
                transaction, expected, timeout_ms, now, self._new_producer_id
            )
        except MustFence:
            self._fence(
                shard,
                transaction,
                lambda code: done(
                    code or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_PRODUCER_EPOCH
                ),
            )
            return
        shard.transactions[transactional_id] = transaction

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                done(code, after.producer_id, after.producer_epoch)
                return
            if transaction.value.producer_epoch == NO_PRODUCER_EPOCH:
                shard.transactions.pop(transactional_id, None)  # It has never been.
            done(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

        self._change(shard, transaction, after, written)

    def add_partitions(
        self,
        transactional_id: str | None,
        producer: Producer,
        partitions: Collection[TopicPartition],
        done: Done,
        *,
        version: int = 0,
    ) -> None:
        """Partitions that are going to be written to; `version`: of the client's transactions.

        Raises KafkaError.
        """
        shard, transaction = self._find(transactional_id)
        try:
            after = decisions.add_partitions(
                transaction, producer, partitions, self._clock.wall_ms(), version
            )
        except AlreadyDone:
            done(ErrorCode.NONE)
            return
        self._change(shard, transaction, after, done)

    def verify_partition(
        self, transactional_id: str | None, producer: Producer, partition: TopicPartition
    ) -> None:
        """Whether the partition was added to the transaction. Raises KafkaError (KIP-890)."""
        self._counters.verifications += 1
        try:
            _, transaction = self._find(transactional_id)
            decisions.verify_partition(transaction, producer, partition)
        except KafkaError:
            self._counters.failed_verifications += 1
            raise

    def end(
        self,
        transactional_id: str | None,
        producer: Producer,
        *,
        commit: bool,
        version: int,
        done: OwnerDone,
    ) -> None:
        """EndTxn; `version`: of the client's transactions. Raises KafkaError."""
        shard, transaction = self._find(transactional_id)
        try:
            after = decisions.end_transaction(
                transaction,
                producer,
                commit=commit,
                version=version,
                now_ms=self._clock.wall_ms(),
                new_producer_id=self._new_producer_id,
            )
        except AlreadyDone as already:
            value = already.value
            done(ErrorCode.NONE, value.producer_id, value.producer_epoch)
            return
        following = decisions.completed(after, after.updated_ms)

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                done(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
                return
            done(code, following.producer_id, following.producer_epoch)
            self._write_markers(shard, transaction)

        self._change(shard, transaction, after, written)

    def describe(self, transactional_id: str) -> TransactionValue:
        """DescribeTransactions, one of them. Raises KafkaError, TRANSACTIONAL_ID_NOT_FOUND."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self._shard_of(transactional_id).transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction.value

    def list_transactions(self) -> Iterator[tuple[str, TransactionValue]]:
        """ListTransactions: all that this broker coordinates. Raises KafkaError while any loads."""
        if not self._open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._runtime.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return (
            (transactional_id, transaction.value)
            for _, shard in self._runtime.active()
            for transactional_id, transaction in shard.transactions.items()
        )

    # ---- carrying out

    def _change(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        after: TransactionValue,
        done: Done,
    ) -> None:
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
                code = _RESPONSE_CODES.get(code, code)
            done(code)

        record = (encode_key(transaction.transactional_id), encode_value(after))
        self._append(shard, [record], written)

    def _append(
        self,
        shard: TransactionShard,
        records: Sequence[tuple[bytes, bytes | None]],
        written: Callable[[ErrorCode, int], None],
    ) -> None:
        now = self._clock.wall_ms()
        batch = build_batch([(now, key, value, ()) for key, value in records])
        self._writer.append(TopicPartition(TRANSACTION_TOPIC, shard.partition), batch, written)

    def _fence(self, shard: TransactionShard, transaction: Transaction, done: Done) -> None:
        """Abort an open transaction so that its owner cannot go on. Raises KafkaError."""
        after = decisions.fence(transaction, self._clock.wall_ms())

        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                done(code)
                self._write_markers(shard, transaction)
            else:
                transaction.note_failed_fence(after.producer_epoch)
                done(code)

        self._change(shard, transaction, after, written)

    def _write_markers(self, shard: TransactionShard, transaction: Transaction) -> None:
        value = transaction.value
        marker = Marker(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            coordinator_epoch=self._runtime.epoch(shard.partition),
            commit=value.state is TransactionState.PREPARE_COMMIT,
            transaction_version=value.client_version,
        )
        self._markers.start(
            (shard.partition, transaction.transactional_id),
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
        self._change(shard, transaction, decisions.completed(transaction.value, now), written)

    # ---- rounds

    def _begin_rounds(
        self, period_ms: int, look: Callable[[TransactionShard], None], place: int
    ) -> None:
        """Look at one partition after the other, so that the loop has its turn in between."""

        def begin() -> None:
            self._begin_rounds(period_ms, look, place)
            for turn, (partition, shard) in enumerate(self._runtime.active()):
                self._deadlines.schedule(
                    turn * ROUND_PAUSE_S, partial(self._look, partition, shard, look)
                )

        handle = self._deadlines.schedule(period_ms / 1000, begin)
        self._rounds[place : place + 1] = [handle]

    def _look(
        self, partition: int, shard: TransactionShard, look: Callable[[TransactionShard], None]
    ) -> None:
        if self._runtime.is_current(partition, shard):
            look(shard)

    def _abort_timed_out(self, shard: TransactionShard) -> None:
        now = self._clock.wall_ms()
        late = [one for one in shard.transactions.values() if decisions.is_timed_out(one, now)]
        for transaction in late:
            logger.info("%r outlived its timeout and is aborted", transaction)
            self._counters.timed_out += 1
            self._fence(shard, transaction, lambda code: None)

    def _remove_expired(self, shard: TransactionShard) -> None:
        now = self._clock.wall_ms()
        expiration_ms = self.settings.id_expiration_ms
        expired = [
            one
            for one in shard.transactions.values()
            if decisions.is_expired(one, now, expiration_ms)
        ]
        for start in range(0, len(expired), TOMBSTONES_PER_BATCH):
            self._forget(shard, expired[start : start + TOMBSTONES_PER_BATCH])

    def _forget(self, shard: TransactionShard, gone: list[Transaction]) -> None:
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

    # ---- looking

    def statistics(self) -> TransactionStatistics:
        """A snapshot."""
        states = {state.label: 0 for state in TransactionState}
        for _, shard in self._runtime.active():
            for transaction in shard.transactions.values():
                states[transaction.state.label] += 1
        counters = self._counters
        return TransactionStatistics(
            transactional_ids=states,
            changes={state.label: count for state, count in counters.changes.items()},
            failed_changes=counters.failed_changes,
            timed_out=counters.timed_out,
            expired_ids=counters.expired_ids,
            verifications=counters.verifications,
            failed_verifications=counters.failed_verifications,
            markers=self._markers.statistics(),
            loading=self._runtime.statistics(),
        )
