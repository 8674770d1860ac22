"""Whether a producer may write to a partition in its transaction (KIP-890).

If the producer's transaction is already open in the partition, in the producer's epoch, it may.
Otherwise the gate asks the transaction coordinator, in the same turn of the event loop in which the
batch is appended: nothing can come between the answer and the append, so a batch that arrives after
the transaction's markers cannot open it again (a hanging transaction). That costs one lookup.

In a cluster the coordinator may be another broker. Then the gate asks it before (`verified`), and
a guard notices changes between the answer and the append (`verification`).

Used by `broker.api.produce` and `broker.api.txn_offset_commit`.
"""

from typing import Final

from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from broker.coordinator.transaction.verification import RemoteCoordinators, Verified
from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BATCH_OVERHEAD
from protocol.records.header import fields_struct
from protocol.types import TopicPartition
from storage.producers.entry import ProducerStateEntry

_PRODUCER: Final = fields_struct("producer_id", "producer_epoch")
_SEQUENCE: Final = fields_struct("base_sequence")

NOT_NOW: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
"""Temporary refusals: the client should try again."""


MOST_REFUSED: Final = 4096
"""Pairs of partition and producer whose refused batches are remembered."""


class TransactionGate:
    """Admits the batches of transactions."""

    def __init__(
        self, transactions: TransactionCoordinator, remote: RemoteCoordinators | None = None
    ) -> None:
        """`remote`: the coordinators of other brokers, in a cluster."""
        self._transactions = transactions
        self._remote = remote
        self._refused = _RefusedBatches()

    def is_remote(self, transactional_id: str) -> bool:
        """Whether the id's coordinator is another broker, or none, so that `verified` is needed."""
        return self._remote is not None and not self._remote.is_here(transactional_id)

    def admit(
        self,
        partition: Partition,
        records: memoryview | bytes,
        transactional_id: str | None,
        *,
        knows_abortable: bool,
        begins_at_zero: bool = False,
        not_added: KafkaError | None = None,
        verified: Verified | None = None,
    ) -> None:
        """Check a transactional batch that is about to be appended. Raises KafkaError.

        `knows_abortable`: the client's version knows TRANSACTION_ABORTABLE. `begins_at_zero`: each
        of the client's transactions has its own epoch, so its first batch in a partition has
        sequence 0; a batch that overtook it is refused even if the partition does not know the
        producer. `not_added`: the error to raise if the batch needed `add` and that was refused.
        `verified`: what the coordinator on another broker has said.
        """
        if transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "A transactional batch needs a transactional id",
            )
        if len(records) < BATCH_OVERHEAD:
            return  # The log refuses it with the reason.
        producer_id, epoch = _PRODUCER.unpack_from(records)
        entry = partition.log.producers.entry(producer_id)
        if entry is not None and _is_open(entry, epoch):
            return
        if not_added is not None:
            raise not_added
        (sequence,) = _SEQUENCE.unpack_from(records)
        if begins_at_zero and entry is None and sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                "The first batch of a transaction in a partition must have sequence 0",
            )
        tp, producer = partition.topic_partition, Producer(producer_id, epoch)
        try:
            if verified is None:
                self._transactions.verify_append(transactional_id, producer, tp)
            else:
                verified.check(tp, producer)
        except KafkaError as error:
            self._refused.note(tp, producer, sequence)
            raise translated(error.code, knows_abortable=knows_abortable) from None
        self._refused.check(tp, producer, sequence)

    async def add(
        self, transactional_id: str, batches: list[tuple[Partition, memoryview]]
    ) -> KafkaError | None:
        """Add partitions that the transaction is about to write to first (KIP-890, part 2).

        While the id's last transaction is being completed, tries again for a while, as Kafka does
        since 4.0. Returns None if they are added or none was missing, else the refusal.
        """
        producer, unopened = _unopened(batches)
        if producer is None:
            return None
        missing = [partition.topic_partition for partition in unopened]
        until = self._transactions.retries_until()
        code = await self._added(transactional_id, producer, missing)
        while code is ErrorCode.CONCURRENT_TRANSACTIONS and await self._transactions.changed(
            transactional_id, until
        ):
            code = await self._added(transactional_id, producer, missing)
        return translated(code, knows_abortable=True) if code else None

    async def _added(
        self, transactional_id: str, producer: Producer, missing: list[TopicPartition]
    ) -> ErrorCode:
        if self._remote is not None and not self._remote.is_here(transactional_id):
            codes = await self._remote.ask(transactional_id, producer, missing, verify_only=False)
            return next((code for code in codes.values() if code), ErrorCode.NONE)
        try:
            return await self._transactions.add_partitions(
                transactional_id, producer, missing, version=VERSION_2
            )
        except KafkaError as error:
            return error.code

    async def verified(
        self, transactional_id: str, batches: list[tuple[Partition, memoryview]]
    ) -> Verified | None:
        """Ask the coordinator on another broker whether partitions belong to the transaction.

        Returns None if nothing has to be verified. Otherwise the caller releases what is returned.
        """
        remote = self._remote
        if remote is None or not self._transactions.settings.verify_partitions:
            return None
        producer, unopened = _unopened(batches)
        if producer is None:
            return None
        verified = remote.guard(producer, unopened)
        try:
            partitions = [partition.topic_partition for partition in unopened]
            codes = await remote.ask(transactional_id, producer, partitions)
        except BaseException:  # ended: the client has gone
            verified.release()
            raise
        verified.answered(codes)
        self._transactions.verified_elsewhere(codes.values())
        return verified


def _unopened(
    batches: list[tuple[Partition, memoryview]],
) -> tuple[Producer | None, list[Partition]]:
    """The producer, and the partitions in which its transaction is not open; None if all have it.

    A request is one producer's; batches of others are refused later.
    """
    producer = None
    found: dict[Partition, None] = {}
    for partition, records in batches:
        if len(records) < BATCH_OVERHEAD:
            continue
        producer_id, epoch = _PRODUCER.unpack_from(records)
        entry = partition.log.producers.entry(producer_id)
        if entry is None or not _is_open(entry, epoch):
            producer = Producer(producer_id, epoch)
            found[partition] = None
    return producer, list(found)


class _RefusedBatches:
    """The lowest sequence among a producer's batches that were refused in a partition.

    A client has several batches in flight. Suppose that the first is refused for now (the
    coordinator is being loaded) and the second would be admitted. A partition that does not know
    the producer takes any sequence, so it would take the second, and then refuse the first when it
    is sent again. So batches behind a refused one are refused, too (Kafka's
    VerificationStateEntry). At most `MOST_REFUSED` are remembered; the oldest is forgotten first.
    """

    __slots__ = ("_least",)

    def __init__(self) -> None:
        self._least: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        """(partition, producer id) to (epoch, lowest refused sequence)."""

    def note(self, tp: TopicPartition, producer: Producer, sequence: int) -> None:
        """Remember a batch that is about to be refused."""
        key = tp, producer.producer_id
        epoch, least = self._least.pop(key, (-1, sequence))
        if producer.producer_epoch > epoch:
            epoch, least = producer.producer_epoch, sequence
        elif producer.producer_epoch == epoch:
            least = min(least, sequence)
        self._least[key] = epoch, least
        if len(self._least) > MOST_REFUSED:
            del self._least[next(iter(self._least))]

    def check(self, tp: TopicPartition, producer: Producer, sequence: int) -> None:
        """Check a batch that is about to be admitted. Raises OUT_OF_ORDER_SEQUENCE_NUMBER."""
        epoch, least = self._least.get((tp, producer.producer_id), (-1, 0))
        if epoch == producer.producer_epoch and sequence > least:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Sequence {sequence} came before {least}, which was refused",
            )
        self._least.pop((tp, producer.producer_id), None)


def _is_open(entry: ProducerStateEntry, epoch: int) -> bool:
    return entry.current_txn_first_offset >= 0 and entry.producer_epoch == epoch


def translated(code: ErrorCode, *, knows_abortable: bool) -> KafkaError:
    """The error for a client of Produce, with a code that makes it react as Kafka intends.

    NOT_ENOUGH_REPLICAS makes old clients try again without fetching metadata.
    """
    if code in NOT_NOW:
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    if code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, code.text)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return KafkaError(code, "The partition does not belong to the transaction")
