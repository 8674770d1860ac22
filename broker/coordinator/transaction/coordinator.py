"""The transaction coordinator: the entrance for requests, its start and its stop.

It finds the shard of a transactional id, lets it decide (`shard.py`, which calls `decisions.py`),
and has the runtime carry that out: record, replay, answer (`broker.coordinator.runtime`). After the
replay, `completion.py` writes the markers that are due; `upkeep.py` does what depends on time and
not on a request. A request that is recorded is work, or returns the signal of the record's end; if
this broker is alone in the ISR, it waits for nothing. The record does not depend on whoever waits.

* EndTxn is answered when the decision is durable, before the markers are written: from then on
  nothing can change it, a restart included (S-TXN-6).
* Requests to a partition that is not served here raise KafkaError: COORDINATOR_LOAD_IN_PROGRESS,
  NOT_COORDINATOR; before `startup` and after `shutdown`: COORDINATOR_NOT_AVAILABLE.

Called by the handlers in `broker/api`, made by `broker/components.py`. After
`kafka.coordinator.transaction`.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from broker.coordinator.marker_writer import MarkerWriter
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.decision import Write
from broker.coordinator.runtime.hooks import CoordinatorHooks
from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.runtime.timers import Timers
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.completion import Completion
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.producer_ids import ProducerIds
from broker.coordinator.transaction.records import FLEXIBLE_VALUE_VERSION, encode_record
from broker.coordinator.transaction.settings import (
    TransactionCounters,
    TransactionSettings,
    TransactionStatistics,
)
from broker.coordinator.transaction.shard import (
    Ownership,
    TransactionDecision,
    TransactionShard,
)
from broker.coordinator.transaction.state import (
    TransactionRecord,
    TransactionState,
    TransactionValue,
)
from broker.coordinator.transaction.upkeep import TransactionUpkeep
from broker.deadlines import Deadlines
from broker.world.in_turn import begin
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TRANSACTION_TOPIC, TopicPartition
from storage.clock import Clock
from storage.waits import PAUSE, Signal

logger = logging.getLogger(__name__)


class TransactionCoordinator:
    """Passes each request of a transactional producer to the shard of its id."""

    def __init__(
        self,
        settings: TransactionSettings,
        writer: PartitionWriter,
        markers: MarkerWriter,
        deadlines: Deadlines,
        clock: Clock,
        producer_ids: ProducerIds,
        topic_size: Callable[[], int | None] | None = None,
    ) -> None:
        """`topic_size`: see `CoordinatorRuntime`."""
        self.settings = settings
        self._clock = clock
        self._deadlines = deadlines
        self._awaiting: dict[str, set[Signal[None]]] = {}
        """By transactional id, who waits for its next change."""
        self._producer_ids = producer_ids
        self._new_producer_id = producer_ids.next_id
        self._runtime: CoordinatorRuntime[TransactionShard, TransactionDecision] = (
            CoordinatorRuntime(
                TRANSACTION_TOPIC,
                writer,
                clock,
                Timers(deadlines, clock),
                CoordinatorHooks(
                    new_shard=TransactionShard,
                    on_active=self._on_active,
                    on_closed=lambda shard, code: self._completion.close(shard),
                    new_decision=TransactionDecision,
                    encode=(
                        encode_record
                        if settings.value_version == FLEXIBLE_VALUE_VERSION
                        else partial(encode_record, version=settings.value_version)
                    ),
                    on_settled=self._on_settled,
                ),
                partition_count=settings.partition_count,
                slice_bytes=settings.load_buffer_bytes,
                topic_size=topic_size,
            )
        )
        self._counters = counters = TransactionCounters()
        self._completion = Completion(self._runtime, markers, deadlines, clock)
        self._upkeep = TransactionUpkeep(
            settings, self._runtime, self._completion, deadlines, clock, counters, producer_ids
        )
        self.run = self._runtime.tasks.run
        self.on_elected = self._runtime.elect
        self.on_resigned = self._runtime.resign
        self.partition_for = self._runtime.partition_for

    # ---- life

    def startup(
        self, partitions: Iterable[tuple[int, int]] = (), *, partition_count: int | None = None
    ) -> None:
        """See `CoordinatorRuntime.startup`."""
        self._upkeep.start()
        self._runtime.startup(partitions, partition_count=partition_count)

    def shutdown(self) -> None:
        """Stop serving. Markers that are not written yet are written after the next start."""
        self._upkeep.stop()
        self._runtime.shutdown()

    def reconfigure(self, settings: TransactionSettings) -> None:
        """Use other settings from now on: `verify_partitions` may change while the broker runs."""
        self.settings = settings

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Drop all transactions if `__transaction_state` is among the deleted topics."""
        if TRANSACTION_TOPIC in topics:
            self._runtime.topic_deleted()

    def _on_active(self, shard: TransactionShard) -> None:
        """A partition was loaded: complete the transactions that it holds prepared (S-TXN-6)."""
        self._producer_ids.note_used(shard.largest_producer_id)
        self._upkeep.carry_out(shard, shard.take_prepared())

    def _on_settled(
        self, shard: TransactionShard, write: Write[TransactionRecord], code: ErrorCode
    ) -> None:
        """A write has ended and was answered: count it, and begin the markers that are due."""
        for record in write.records:
            for changed in self._awaiting.get(record.key, ()):
                changed.fire()
            if code is not ErrorCode.NONE:
                state = TransactionState.DEAD if record.value is None else record.value.state
                self._counters.failed_changes += record.value is not None
                logger.warning("%s: writing %s failed: %s", record.key, state.label, code.name)
            elif record.value is None:
                self._counters.expired_ids += 1
            else:
                self._counters.changes[record.value.state] += 1
        for transactional_id in shard.take_prepared():
            begin(self._completion.complete(shard, transactional_id))

    def _owned_shard(self, transactional_id: str | None) -> tuple[str, TransactionShard]:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return transactional_id, self._runtime.shard_of(transactional_id)

    # ---- requests

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Ownership:
        """InitProducerId of a transactional producer. Raises KafkaError.

        A transaction that is still open is aborted and the answer is CONCURRENT_TRANSACTIONS: when
        the client asks again after the abort, it becomes the owner.
        """
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.settings.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        shard, out = self._runtime.shard_of(transactional_id), TransactionDecision()
        now_ms = self._clock.wall_ms()
        owned = shard.init_producer(
            transactional_id, timeout_ms, expected, now_ms, self._new_producer_id, out
        )
        code = await self._runtime.carry_out(shard, out).parked()
        return owned if code is ErrorCode.NONE else Ownership(code)

    def add_partitions(
        self,
        transactional_id: str | None,
        producer: Producer,
        partitions: Collection[TopicPartition],
        *,
        version: int = 0,
    ) -> Signal[ErrorCode]:
        """Add partitions to the transaction; `version` is the client's transaction.version.

        Returns the signal of the code. Raises KafkaError.
        """
        name, shard = self._owned_shard(transactional_id)
        out = TransactionDecision()
        shard.add_partitions(name, producer, partitions, self._clock.wall_ms(), version, out)
        return self._runtime.carry_out(shard, out)

    def retries_until(self) -> float:
        """Until when, monotonic seconds, what begins now is tried again while its id is busy."""
        return self._clock.monotonic() + self.settings.retry_max_ms / 1000

    async def changed(self, transactional_id: str, until: float) -> bool:
        """Wait until a change of the id is durable or has failed, or it is time to try again.

        Returns False, at once, if `until` has passed.
        """
        left = until - self._clock.monotonic()
        if left <= 0:
            return False
        signal: Signal[None] = Signal()
        awaiting = self._awaiting.setdefault(transactional_id, set())
        awaiting.add(signal)
        timer = self._deadlines.schedule(min(left, self.settings.retry_ms / 1000), signal.fire)
        try:
            await signal.parked()
        finally:
            timer.cancel()
            awaiting.discard(signal)
            if not awaiting:
                self._awaiting.pop(transactional_id, None)
        return True

    def verify_partition(
        self, transactional_id: str | None, producer: Producer, partition: TopicPartition
    ) -> None:
        """Raise KafkaError unless the partition was added to the transaction (KIP-890)."""
        self._counters.verifications += 1
        try:
            name, shard = self._owned_shard(transactional_id)
            decisions.verify_partition(shard.find(name), producer, partition)
        except KafkaError:
            self._counters.failed_verifications += 1
            raise

    def verify_append(
        self, transactional_id: str | None, producer: Producer, partition: TopicPartition
    ) -> None:
        """As `verify_partition`, unless transaction.partition.verification.enable is off."""
        if self.settings.verify_partitions:
            self.verify_partition(transactional_id, producer, partition)

    def verified_elsewhere(self, codes: Iterable[ErrorCode]) -> None:
        """Count what a coordinator on another broker has said, one code for each partition."""
        for code in codes:
            self._counters.verifications += 1
            self._counters.failed_verifications += code is not ErrorCode.NONE

    async def end(
        self, transactional_id: str | None, producer: Producer, *, commit: bool, version: int
    ) -> Ownership:
        """EndTxn; `version` is the client's transaction.version. Raises KafkaError."""
        name, shard = self._owned_shard(transactional_id)
        out = TransactionDecision()
        owned = shard.end(
            name,
            producer,
            commit=commit,
            version=version,
            now_ms=self._clock.wall_ms(),
            new_producer_id=self._new_producer_id,
            out=out,
        )
        code = await self._runtime.carry_out(shard, out).parked()
        return owned if code is ErrorCode.NONE else Ownership(code)

    def describe(self, transactional_id: str) -> TransactionValue:
        """Return one id's value. Raises KafkaError: TRANSACTIONAL_ID_NOT_FOUND, among others."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        transaction = self._runtime.shard_of(transactional_id).transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction.value

    def list_transactions(self) -> Iterator[tuple[str, TransactionValue]]:
        """ListTransactions: all ids of this broker. Raises KafkaError while a partition loads."""
        shards = self._runtime.all_shards()
        return (
            (transactional_id, transaction.value)
            for shard in shards
            for transactional_id, transaction in shard.transactions.items()
        )

    # ---- statistics

    async def statistics(self) -> TransactionStatistics:
        """The numbers of the ids and their work; ids may change while they are counted."""
        states: Counter[TransactionState] = Counter()
        for shard in self._runtime.active():
            for transaction in list(shard.transactions.values()):
                states[transaction.value.state] += 1
                await PAUSE
        return TransactionStatistics(
            transactional_ids={state.label: states[state] for state in TransactionState},
            counters=self._counters,
            markers=self._completion.statistics(),
            loading=self._runtime.statistics(),
        )
