"""Decisions on requests for a transactional id: the value to write, or the code of the refusal.

Pure functions over a `Transaction`, which they do not change. A refusal is a KafkaError. A third
outcome is `AlreadyDone`: the request is a retry, and is answered without a write.

The codes are those of Kafka's TransactionCoordinator (S-TXN-4); the handlers in `broker.api`
translate them for request versions that do not know them yet:

    INVALID_PRODUCER_ID_MAPPING   the id is unknown, or belongs to another producer id
    PRODUCER_FENCED               the epoch is not the current one
    CONCURRENT_TRANSACTIONS       the last change or the markers are still being written
    INVALID_TXN_STATE             the request contradicts an earlier decision
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from broker.coordinator.transaction.producer_ids import NewProducerId
from broker.coordinator.transaction.state import (
    AT_REST,
    COMPLETE,
    LAST_EPOCH,
    PREPARED,
    VERSION_2,
    Transaction,
    TransactionState,
    TransactionValue,
    is_epoch_exhausted,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TopicPartition,
)

_S = TransactionState


@dataclass(frozen=True, slots=True)
class Producer:
    """The producer that sends the request."""

    producer_id: int
    producer_epoch: int


class AlreadyDone(Exception):
    """The request was carried out before; `value` is the current value."""

    def __init__(self, value: TransactionValue) -> None:
        super().__init__(value.state.label)
        self.value = value


class MustFence(Exception):
    """The id has an open transaction of its former owner, which must be aborted first."""


def _refuse_while_busy(transaction: Transaction) -> None:
    if transaction.in_transition:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _refuse_until_complete(transaction: Transaction) -> None:
    """Refuse while the markers are still to be written; Kafka has a pending transition then.

    Checked before the owner, because the answer to EndTxn 5 has given the owner the id and epoch
    that the transaction has only when it is complete.
    """
    if transaction.in_transition or transaction.value.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


# ---- InitProducerId


def new_transaction(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionValue:
    """The value of a new id; it has no epoch yet."""
    return TransactionValue(producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=now_ms)


def init_producer(
    transaction: Transaction,
    expected: Producer | None,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: NewProducerId,
) -> TransactionValue:
    """Give the id a new owner, or its owner (`expected`) a new epoch after an error (KIP-360).

    Raises KafkaError, or MustFence when a transaction is open.
    """
    value = transaction.value
    _refuse_until_complete(transaction)
    if expected is not None and not _is_own(value, expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if value.state not in AT_REST:
        raise MustFence
    own = (value.producer_epoch, value.last_producer_epoch)
    if value.is_epoch_exhausted and (expected is None or expected.producer_epoch in own):
        last = NO_PRODUCER_EPOCH if expected is None else expected.producer_epoch
        return _owned(value, new_producer_id(), 0, last, timeout_ms, now_ms)
    epoch, last = _next_epoch(value, expected)
    return _owned(value, value.producer_id, epoch, last, timeout_ms, now_ms)


def _is_own(value: TransactionValue, expected: Producer) -> bool:
    """Whether `expected` is the owner, or was it and missed the answer that changed its id."""
    if value.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == value.producer_id:
        return True
    was_own = expected.producer_id == value.previous_producer_id
    return was_own and is_epoch_exhausted(expected.producer_epoch)


def _next_epoch(value: TransactionValue, expected: Producer | None) -> tuple[int, int]:
    """Return (epoch, last epoch) of the next owner. Raises KafkaError PRODUCER_FENCED."""
    current = value.producer_epoch
    if expected is None:
        return current + 1, NO_PRODUCER_EPOCH
    if current == NO_PRODUCER_EPOCH:
        return 0, NO_PRODUCER_EPOCH
    if expected.producer_epoch == current and expected.producer_id == value.producer_id:
        return current + 1, current
    if expected.producer_epoch == value.last_producer_epoch:
        return current, value.last_producer_epoch  # A retry: the epoch has been raised already.
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _owned(
    value: TransactionValue, producer_id: int, epoch: int, last: int, timeout_ms: int, now_ms: int
) -> TransactionValue:
    # A retry must keep the previous producer id, which the retried request came from.
    changed = producer_id != value.producer_id or epoch != value.producer_epoch
    return TransactionValue(
        producer_id=producer_id,
        producer_epoch=epoch,
        previous_producer_id=value.producer_id if changed else value.previous_producer_id,
        last_producer_epoch=last,
        timeout_ms=timeout_ms,
        start_ms=NO_TIMESTAMP,
        updated_ms=now_ms,
        client_version=value.client_version,
    )


# ---- AddPartitionsToTxn, AddOffsetsToTxn, and partitions that Produce and TxnOffsetCommit add


def check_owner(value: TransactionValue, producer: Producer) -> None:
    """Check that `producer` owns the id. Raises KafkaError."""
    if value.producer_id != producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if value.producer_epoch != producer.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)


def add_partitions(
    transaction: Transaction,
    producer: Producer,
    partitions: Collection[TopicPartition],
    now_ms: int,
    version: int,
) -> TransactionValue:
    """Add partitions that the transaction will write to. Raises KafkaError, AlreadyDone."""
    value = transaction.value
    _refuse_until_complete(transaction)
    check_owner(value, producer)
    if value.state is _S.ONGOING and value.partitions.issuperset(partitions):
        raise AlreadyDone(value)
    return replace(
        value,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=_S.ONGOING,
        partitions=value.partitions.union(partitions),
        start_ms=value.start_ms if value.state is _S.ONGOING else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def verify_partition(
    transaction: Transaction, producer: Producer, partition: TopicPartition
) -> None:
    """Check that the producer may write to the partition in its transaction (KIP-890).

    Raises KafkaError: TRANSACTION_ABORTABLE when the partition was not added, among others.
    """
    value = transaction.value
    check_owner(value, producer)
    if value.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if partition not in value.partitions:
        raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE)


# ---- EndTxn


def end_transaction(
    transaction: Transaction,
    producer: Producer,
    *,
    commit: bool,
    version: int,
    now_ms: int,
    new_producer_id: NewProducerId,
) -> TransactionValue:
    """Commit or abort as the owner asks. Raises KafkaError, AlreadyDone."""
    value = transaction.value
    if version >= VERSION_2:
        return _end_version_2(transaction, producer, commit, now_ms, new_producer_id)
    check_owner(value, producer)
    _refuse_while_busy(transaction)
    if value.state is _S.ONGOING:
        return _decided(value, commit, now_ms)
    _refuse_unless_repeated(value, commit)
    raise AlreadyDone(value)


def _refuse_unless_repeated(value: TransactionValue, commit: bool) -> None:
    """Accept only a repetition of the earlier decision. Raises KafkaError."""
    if value.state is _S.EMPTY:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    committed = value.state in (_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT)
    if committed is not commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if value.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _decided(value: TransactionValue, commit: bool, now_ms: int) -> TransactionValue:
    return replace(
        value,
        previous_producer_id=value.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=_S.PREPARE_COMMIT if commit else _S.PREPARE_ABORT,
        updated_ms=now_ms,
        client_version=0,
    )


def _end_version_2(
    transaction: Transaction,
    producer: Producer,
    commit: bool,
    now_ms: int,
    new_producer_id: NewProducerId,
) -> TransactionValue:
    """KIP-890: the current epoch ends this transaction, the one before is a retry (S-TXN-7)."""
    value = transaction.value
    _refuse_until_complete(transaction)
    if _is_retried_end(value, producer):
        if value.state not in COMPLETE:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        _refuse_unless_repeated(value, commit)
        raise AlreadyDone(value)
    check_owner(value, producer)
    if value.state is not _S.ONGOING and commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return replace(
        _decided(value, commit, now_ms),
        producer_epoch=min(value.producer_epoch + 1, LAST_EPOCH),
        last_producer_epoch=value.producer_epoch,
        next_producer_id=_next_producer_id(value, new_producer_id),
        # An abort without any partition begins its transaction here.
        start_ms=value.start_ms if value.state is _S.ONGOING else now_ms,
        client_version=VERSION_2,
    )


def _next_producer_id(value: TransactionValue, new_producer_id: NewProducerId) -> int:
    """Return the id that the owner has when its transaction of version 2 is complete (rule 3)."""
    return new_producer_id() if value.is_epoch_exhausted else NO_PRODUCER_ID


def _is_retried_end(value: TransactionValue, producer: Producer) -> bool:
    if not value.bumps_epochs:
        return False
    epoch = producer.producer_epoch
    if producer.producer_id == value.producer_id:
        # Epoch 32767 is reserved for fencing; a producer holding it could never end a transaction.
        fenced_for_good = value.producer_epoch == LAST_EPOCH and value.state in COMPLETE
        return epoch + 1 == value.producer_epoch and not fenced_for_good
    # The epoch was exhausted, so the producer id has changed too.
    was_own = producer.producer_id == value.previous_producer_id
    return was_own and epoch == LAST_EPOCH - 1 and value.producer_epoch == 0


# ---- decisions of the coordinator itself


def fence(
    transaction: Transaction, now_ms: int, new_producer_id: NewProducerId
) -> TransactionValue:
    """Abort the open transaction under a raised epoch, so that its owner cannot go on.

    The coordinator fences with version 2, whatever version the owner uses. If an owner of version 2
    aborts too, its EndTxn counts as a retry and the owner continues with the raised epoch, because
    a timeout is no reason to give up the producer. An owner that asks for its next epoch (KIP-360)
    continues as well: its first request fenced here and got CONCURRENT_TRANSACTIONS, and it asks
    again. If a new owner came in between, `last_producer_epoch` is unset and the former owner is
    fenced.

    Raises KafkaError: CONCURRENT_TRANSACTIONS, or that of `new_producer_id`.
    """
    value = transaction.value
    _refuse_while_busy(transaction)
    assert value.state is _S.ONGOING
    raised, last = value.producer_epoch + 1, value.producer_epoch
    if transaction.fence_failed:
        raised, last = value.producer_epoch, value.last_producer_epoch
    return replace(
        _decided(value, False, now_ms),
        # This broker never gives out the last epoch, but another broker's log may hold it: the
        # new producer id fences as well.
        producer_epoch=min(raised, LAST_EPOCH),
        last_producer_epoch=last,
        next_producer_id=_next_producer_id(value, new_producer_id),
        client_version=VERSION_2,
    )


def completed(value: TransactionValue, now_ms: int) -> TransactionValue:
    """Complete a prepared transaction, all markers of which are written."""
    assert value.state in PREPARED
    moves_on = value.next_producer_id != NO_PRODUCER_ID
    return replace(
        value,
        state=_S.COMPLETE_COMMIT if value.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT,
        partitions=frozenset(),
        previous_producer_id=value.producer_id,
        producer_id=value.next_producer_id if moves_on else value.producer_id,
        producer_epoch=0 if moves_on else value.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
        updated_ms=now_ms,
    )


def is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    """Whether an open transaction has outlived its timeout."""
    value = transaction.value
    return (
        value.state is _S.ONGOING
        and not transaction.in_transition
        and value.start_ms + value.timeout_ms < now_ms
    )


def is_expired(transaction: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether an id has been at rest for `expiration_ms`, so that it may be forgotten."""
    value = transaction.value
    return (
        value.state in AT_REST
        and not transaction.in_transition
        and value.updated_ms <= now_ms - expiration_ms
    )
