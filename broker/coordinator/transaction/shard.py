"""All transactional ids of one partition of `__transaction_state`: what is decided, what is so.

Each request is a method that fills a `Decision`: `decisions.py` says which value follows, here it
becomes a record and an answer. Nothing changes before `replay`, which is called with what became
durable, and with what the log holds when the partition is loaded. While the log is read only the
last record of each key is kept, and `settle` decodes what is left (S-TXN-6).

What a replay leaves to be done is in `take_prepared`: transactions whose end is decided and whose
markers are to be written. It makes no difference whether that was decided a moment ago or before
the last crash.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from broker.coordinator.runtime.decision import Decision, Done
from broker.coordinator.runtime.in_flight import InFlight
from broker.coordinator.transaction import decisions
from broker.coordinator.transaction.decisions import (
    AlreadyDone,
    MustFence,
    NewProducerId,
    Producer,
)
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

logger = logging.getLogger(__name__)

RECORDS_PER_YIELD = 100
"""Records decoded at a stretch while loading: about a millisecond."""

OwnerDone = Callable[[ErrorCode, int, int], None]
"""(code, producer id, epoch) that the owner goes on with; -1 and -1 with an error."""


class TransactionDecision(Decision[TransactionRecord]):
    """What a shard of the transaction coordinator decides: it has no effects of its own."""

    __slots__ = ()


def _told_owner(value: TransactionValue, done: OwnerDone) -> Done:
    """The owner goes on with id and epoch of `value`, if that is durable."""

    def answer(code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            done(code, value.producer_id, value.producer_epoch)
        else:
            done(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    return answer


class TransactionShard:
    """The transactional ids of one partition, with what each of them is in the middle of."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.in_flight: InFlight[TransactionRecord] = InFlight()
        self.transactions: dict[str, Transaction] = {}
        self.largest_producer_id = NO_PRODUCER_ID
        """Of those that the log names; none that is given out may be below."""
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}
        """While loading: the last record of each key."""
        self._prepared: list[str] = []

    def find(self, transactional_id: str) -> Transaction:
        """Raises KafkaError, INVALID_PRODUCER_ID_MAPPING for an id that is not known."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    # ---- decisions; all raise KafkaError when they refuse

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        now_ms: int,
        new_producer_id: NewProducerId,
        done: OwnerDone,
        out: TransactionDecision,
    ) -> None:
        """InitProducerId: a new owner, or a former owner's open transaction aborted first."""
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
            self.fence(
                transaction,
                now_ms,
                lambda code: done(
                    code or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_PRODUCER_EPOCH
                ),
                out,
            )
            return
        out.write([transaction.becoming(after)], _told_owner(after, done))

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        now_ms: int,
        version: int,
        done: Done,
        out: TransactionDecision,
    ) -> None:
        """Partitions that are going to be written to."""
        transaction = self.find(transactional_id)
        try:
            after = decisions.add_partitions(transaction, producer, partitions, now_ms, version)
        except AlreadyDone:
            out.answer(done, ErrorCode.NONE)
            return
        out.write([transaction.becoming(after)], done)

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        *,
        commit: bool,
        version: int,
        now_ms: int,
        new_producer_id: NewProducerId,
        done: OwnerDone,
        out: TransactionDecision,
    ) -> None:
        """EndTxn: the decision; markers are due when it is durable."""
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
            out.answer(_told_owner(already.value, done), ErrorCode.NONE)
            return
        # The owner goes on with what the transaction will be when its markers are written.
        following = decisions.completed(after, after.updated_ms)
        out.write([transaction.becoming(after)], _told_owner(following, done))

    def fence(
        self,
        transaction: Transaction,
        now_ms: int,
        done: Done | None,
        out: TransactionDecision,
    ) -> None:
        """Abort an open transaction so that its owner cannot go on; markers are due then."""
        after = decisions.fence(transaction, now_ms)

        def then(code: ErrorCode, following: TransactionDecision) -> None:
            if code is not ErrorCode.NONE:
                transaction.note_failed_fence(after.producer_epoch)

        out.write([transaction.becoming(after)], done, then)

    def complete(
        self, transaction: Transaction, now_ms: int, done: Done, out: TransactionDecision
    ) -> None:
        """All markers of a prepared transaction are written."""
        after = decisions.completed(transaction.value, now_ms)
        out.write([transaction.becoming(after)], done)

    def forget(self, expired: Sequence[Transaction], out: TransactionDecision) -> None:
        """Tombstones, in one batch; ids whose tombstone cannot be written stay."""
        out.write([transaction.becoming(None) for transaction in expired])

    def on_timer(self, timer: Any, out: TransactionDecision) -> None:
        """No decision here sets one: what comes with time concerns all ids (`upkeep.py`)."""

    # ---- replay

    def replay(self, record: TransactionRecord, offset: int) -> None:
        """One durable record, from a write just done or from the log."""
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
        """Ids that became prepared since this was called last; their markers are due."""
        prepared, self._prepared = self._prepared, []
        return prepared

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log."""
        if record.key is None:
            self.skipped_records += 1
            return
        # A later record takes the place of an earlier one, a tombstone too.
        self._noted[bytes(record.key)] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """Transactions are not written to in transactions."""

    def settle(self) -> Iterator[None]:
        """Decode and replay the noted records; yields now and then."""
        noted, self._noted = self._noted, {}
        for turn, (key, record) in enumerate(noted.items(), 1):
            self._load(key, record)
            if turn % RECORDS_PER_YIELD == 0:
                yield

    def _load(self, key: bytes, record: Record) -> None:
        """What cannot be read is logged and left out: one id less is better than none at all."""
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
