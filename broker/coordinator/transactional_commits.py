"""TxnOffsetCommit: a group's offsets within a transaction, which concerns both coordinators.

The group's partition of `__consumer_offsets` must belong to the transaction (KIP-890). For a client
with transactions of version 2, the commit itself first adds the partition, and goes on when that is
durable. An older client has added it by AddOffsetsToTxn; this is verified without a checkpoint
before the offsets are appended.
"""

from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import TransactionalCommit
from broker.coordinator.runtime.decision import Done
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from protocol.errors import ErrorCode, KafkaError
from protocol.types import OFFSETS_TOPIC, TopicPartition


class TransactionRefused(KafkaError):
    """The transaction coordinator refused the request, not the group coordinator."""


class TransactionalCommits:
    """Adds the group's partition to the transaction, or verifies it; then commits to the group."""

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
        """Commit offsets; `done` gets NONE when they are durable, or an error.

        `version` is the client's transaction.version. Raises TransactionRefused, or KafkaError when
        the group refuses.
        """
        producer = Producer(request.producer_id, request.producer_epoch)
        tp = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.commit.group_id))
        if version < VERSION_2:
            try:
                self._transactions.verify_append(transactional_id, producer, tp)
            except KafkaError as error:
                raise TransactionRefused(error.code) from None
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
