"""All transactional ids of one partition of `__transaction_state`: decisions and durable state.

Each request is a method that fills a `Decision`: `decisions.py` computes the next value, and the
method turns it into a record and returns the answer for when that is durable. Only `replay` changes
the state; it is called with records that became durable, and with those of the log when the
partition is loaded. While the log is read only the last record of each key is kept, and `settle`
decodes those (S-TXN-6).

`take_prepared` returns the transactions that a replay found decided and whose markers are due,
whether they were decided a moment ago or before the last crash.
"""

import logging
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from broker.coordinator.runtime.decision import Decision
from broker.coordinator.runtime.in_flight import InFlight
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.decisions import (
    AlreadyDone,
    MustFence,
    Producer,
)
from broker.coordinator.transaction.producer_ids import NewProducerId
from broker.coordinator.transaction.records import decode_record
from broker.coordinator.transaction.state import (
    PREPARED,
    Transaction,
    TransactionRecord,
    TransactionState,
    TransactionValue,
)
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records.batch import BatchHeader
from protocol.records.record import Record
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from storage.waits import PAUSE

logger = logging.getLogger(__name__)


class Ownership(NamedTuple):
    """The producer id and epoch for the owner of a transactional id; no id with an error."""

    code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class TransactionDecision(Decision[TransactionRecord]):
    """The decision of a shard of the transaction coordinator; carried out by the runtime."""

    __slots__ = ()


def _owned(value: TransactionValue) -> Ownership:
    return Ownership(ErrorCode.NONE, value.producer_id, value.producer_epoch)


class TransactionShard:
    """The transactional ids of one partition, and the decisions that change them."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.in_flight: InFlight[TransactionRecord] = InFlight()
        self.transactions: dict[str, Transaction] = {}
        self.largest_producer_id = NO_PRODUCER_ID
        """The largest producer id in the log; ids that are given out must be above it."""
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}
        """While loading: the last record of each key."""
        self._prepared: list[str] = []

    def find(self, transactional_id: str) -> Transaction:
        """Return an id's transaction. Raises KafkaError INVALID_PRODUCER_ID_MAPPING if unknown."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    # ---- decisions; all raise KafkaError when they refuse, and return what the write leads to

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        now_ms: int,
        new_producer_id: NewProducerId,
        out: TransactionDecision,
    ) -> Ownership:
        """InitProducerId: set a new owner, or first abort the former owner's open transaction."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            if transactional_id in self.in_flight:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            value = decisions.new_transaction(new_producer_id(), timeout_ms, now_ms)
            transaction = Transaction(transactional_id, value, self.in_flight)
        try:
            after = decisions.init_producer(
                transaction, expected, timeout_ms, now_ms, new_producer_id
            )
        except MustFence:
            self.fence(transaction, now_ms, new_producer_id, out)
            return Ownership(ErrorCode.CONCURRENT_TRANSACTIONS)
        out.write([transaction.becoming(after)])
        return _owned(after)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        now_ms: int,
        version: int,
        out: TransactionDecision,
    ) -> None:
        """Add partitions that will be written to."""
        transaction = self.find(transactional_id)
        try:
            after = decisions.add_partitions(transaction, producer, partitions, now_ms, version)
        except AlreadyDone:
            return
        out.write([transaction.becoming(after)])

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        *,
        commit: bool,
        version: int,
        now_ms: int,
        new_producer_id: NewProducerId,
        out: TransactionDecision,
    ) -> Ownership:
        """EndTxn: decide commit or abort; markers are due when the decision is durable."""
        transaction = self.find(transactional_id)
        try:
            after = decisions.end_transaction(
                transaction,
                producer,
                commit=commit,
                version=version,
                now_ms=now_ms,
                new_producer_id=new_producer_id,
            )
        except AlreadyDone as already:
            return _owned(already.value)
        out.write([transaction.becoming(after)])
        # The owner continues with the id and epoch that the completed transaction will have.
        return _owned(decisions.completed(after, after.updated_ms))

    def fence(
        self,
        transaction: Transaction,
        now_ms: int,
        new_producer_id: NewProducerId,
        out: TransactionDecision,
    ) -> None:
        """Abort an open transaction under a raised epoch, so that its owner cannot go on."""
        after = decisions.fence(transaction, now_ms, new_producer_id)

        def then(code: ErrorCode, following: TransactionDecision) -> None:
            if code is not ErrorCode.NONE:
                transaction.note_failed_fence(after.producer_epoch)

        out.write([transaction.becoming(after)], then)

    def complete(self, transaction: Transaction, now_ms: int, out: TransactionDecision) -> None:
        """Complete a prepared transaction, all markers of which are written."""
        out.write([transaction.becoming(decisions.completed(transaction.value, now_ms))])

    def forget(self, expired: Sequence[Transaction], out: TransactionDecision) -> None:
        """Write tombstones in one batch; if the write fails the ids stay."""
        out.write([transaction.becoming(None) for transaction in expired])

    def on_timer(self, timer: Any, out: TransactionDecision) -> None:
        """Unused: no decision here sets a timer; timeouts and expiry are in `upkeep.py`."""

    # ---- replay

    def replay(self, record: TransactionRecord, offset: int) -> None:
        """Apply one durable record, from a write of this broker or from the log."""
        transactional_id, value = record.key, record.value
        if value is None or value.state is TransactionState.DEAD:
            self.transactions.pop(transactional_id, None)
            return
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = Transaction(transactional_id, value, self.in_flight)
            self.transactions[transactional_id] = transaction
        transaction.replay(value)
        largest = max(value.producer_id, value.next_producer_id)
        if largest > self.largest_producer_id:
            self.largest_producer_id = largest
        if value.state in PREPARED:
            self._prepared.append(transactional_id)

    def take_prepared(self) -> list[str]:
        """Return the ids that became prepared since the last call; their markers are due."""
        prepared, self._prepared = self._prepared, []
        return prepared

    async def load_record(self, header: BatchHeader, record: Record) -> None:
        """Note one record of the log."""
        if record.key is None:
            self.skipped_records += 1
            return
        # A later record replaces an earlier one of the same key; a tombstone does so too.
        self._noted[bytes(record.key)] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """Unused: `__transaction_state` is not written to in transactions."""

    async def settle(self) -> None:
        """Decode and replay the noted records."""
        noted, self._noted = self._noted, {}
        for key, record in noted.items():
            self._load(key, record)
            await PAUSE

    def _load(self, key: bytes, record: Record) -> None:
        """Decode and replay one record. An unreadable one is logged and skipped: losing one id is
        better than losing all."""
        try:
            decoded = decode_record(key, record.value)
        except ProtocolError as error:
            self.skipped_records += 1
            logger.warning("Skipped the record at offset %d: %s", record.offset, error)
            return
        if decoded is not None:
            self.replay(decoded, record.offset)

    def _check(self) -> None:
        """Invariants, for tests."""
        self.in_flight._check()
        for transactional_id, transaction in self.transactions.items():
            assert transaction.transactional_id == transactional_id
            transaction._check()
