"""TxnOffsetCommit: offsets of a group within a transaction, the one request that concerns both.

The group's partition of `__consumer_offsets` must belong to the transaction (KIP-890). A client of
transactions of version 2 has it added by its commit, which goes on when that is durable; one of
version 1 has added it by AddOffsetsToTxn, which is verified in the same turn of the loop in which
the offsets are appended. The two coordinators do not know each other.
"""

from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import TransactionalCommit
from broker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from broker.coordinator.runtime.decision import Done
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition


class TransactionRefused(KafkaError):
    """The transaction coordinator refused, not the group."""


class TransactionalCommits:
    """Into the transaction, then into the group."""

    def __init__(self, groups: GroupCoordinator, transactions: TransactionCoordinator) -> None:
        self._groups = groups
        self._transactions = transactions

    @property
    def metadata_max_length(self) -> int:
        """offset.metadata.max.bytes."""
        return self._groups.settings.metadata_max_length

    def commit(
        self,
        transactional_id: str | None,
        request: TransactionalCommit,
        done: Done,
        *,
        version: int,
    ) -> None:
        """`version`: of the client's transactions; `done` when the offsets are durable, or why not.

        Raises TransactionRefused, or KafkaError with what the group refuses.
        """
        producer = Producer(request.producer_id, request.producer_epoch)
        tp = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.commit.group_id))
        if version < VERSION_2:
            self._verify(transactional_id, producer, tp)
            self._groups.commit_in_transaction(request, done)
            return

        def added(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                done(code)
                return
            try:
                self._groups.commit_in_transaction(request, done)
            except KafkaError as error:
                done(error.code)

        try:
            self._transactions.add_partitions(
                transactional_id, producer, [tp], added, version=version
            )
        except KafkaError as error:
            raise TransactionRefused(error.code) from None

    def _verify(self, transactional_id: str | None, producer: Producer, tp: TopicPartition) -> None:
        if not self._transactions.settings.verify_partitions:
            return
        try:
            self._transactions.verify_partition(transactional_id, producer, tp)
        except KafkaError as error:
            raise TransactionRefused(error.code) from None
