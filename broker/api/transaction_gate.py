"""Whether a producer may write to a partition in its transaction (KIP-890).

A transaction that is open in the partition already, in the producer's epoch, is proof enough; else
the transaction coordinator is asked, in the same turn of the event loop in which the batch is
appended: nothing can come between the answer and the append, and a batch that arrives after the
transaction's markers cannot open it anew (a hanging transaction). All coordinators are on this
broker, so the answer costs one look into a table.

Used by `broker.api.produce` and `broker.api.txn_offset_commit`.
"""

import struct
from typing import Final

from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BATCH_OVERHEAD
from protocol.types import TopicPartition

# Where a v2 batch header has producer id and epoch (protocol.records.batch).
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AT: Final = 43

NOT_NOW: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Refusals that pass: the client is to try again."""


class TransactionGate:
    """See the module."""

    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions
        self._verify = transactions.settings.verify_partitions

    def admit(
        self,
        partition: Partition,
        records: memoryview,
        transactional_id: str | None,
        *,
        knows_abortable: bool,
    ) -> None:
        """A transactional batch is about to be appended. Raises KafkaError.

        `knows_abortable`: the client's version knows TRANSACTION_ABORTABLE.
        """
        if transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "A transactional batch needs a transactional id",
            )
        if len(records) < BATCH_OVERHEAD:
            return  # The log says what is wrong with it.
        producer_id, epoch = _PRODUCER.unpack_from(records, _PRODUCER_AT)
        entry = partition.log.producers.entry(producer_id)
        if (
            entry is not None
            and entry.current_txn_first_offset >= 0
            and entry.producer_epoch == epoch
        ):
            return
        self.verify(
            transactional_id,
            Producer(producer_id, epoch),
            partition.topic_partition,
            knows_abortable=knows_abortable,
        )

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        tp: TopicPartition,
        *,
        knows_abortable: bool,
    ) -> None:
        """Ask the coordinator. Raises KafkaError with the code that the client is to see."""
        if not self._verify:
            return
        try:
            self._transactions.verify_partition(transactional_id, producer, tp)
        except KafkaError as error:
            raise translated(error.code, knows_abortable=knows_abortable) from None


def translated(code: ErrorCode, *, knows_abortable: bool) -> KafkaError:
    """What a client of Produce is told: codes that it takes as Kafka means them.

    NOT_ENOUGH_REPLICAS makes old clients try again without fetching metadata anew.
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
    return KafkaError(code, "Partition was not added to the transaction")
