"""TxnOffsetCommit: a group's offsets within a transaction, which concerns both coordinators.

The group's partition of `__consumer_offsets` must belong to the transaction (KIP-890). For a client
with transactions of version 2, the commit itself first adds the partition, and goes on when that is
durable. An older client has added it by AddOffsetsToTxn; this is verified without a checkpoint
before the offsets are appended.

In a cluster the transaction coordinator may be another broker. Then `verified` asks it first, and a
guard notices changes before the commit (`broker.coordinator.transaction.verification`).
"""

from collections.abc import Callable

from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import TransactionalCommit
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.state import VERSION_2
from broker.coordinator.transaction.verification import RemoteCoordinators, Verified
from broker.coordinator.write_codes import response_code
from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.types import OFFSETS_TOPIC, TopicPartition


class TransactionRefused(KafkaError):
    """The transaction coordinator refused the request, not the group coordinator."""


class TransactionalCommits:
    """Adds the group's partition to the transaction, or verifies it; then commits to the group."""

    def __init__(
        self,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        remote: RemoteCoordinators | None = None,
        find: Callable[[TopicPartition], Partition] | None = None,
    ) -> None:
        """In a cluster: `remote` are the transaction coordinators of other brokers, and `find`
        finds a partition that is led here, or raises KafkaError."""
        self._groups = groups
        self._transactions = transactions
        self._remote = remote
        self._find = find

    @property
    def metadata_max_length(self) -> int:
        """offset.metadata.max.bytes."""
        return self._groups.settings.metadata_max_length

    async def verified(
        self, transactional_id: str | None, producer: Producer, group_id: str, *, version: int
    ) -> Verified | None:
        """Ask a transaction coordinator on another broker; None if that is not needed.

        The caller releases the result. Raises KafkaError if the group is not here.
        """
        remote = self._remote
        if remote is None or self._find is None or not transactional_id:
            return None
        if remote.is_here(transactional_id):
            return None
        adds = version >= VERSION_2
        if not adds and not self._transactions.settings.verify_partitions:
            return None
        tp = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(group_id))
        try:
            partition = self._find(tp)
        except KafkaError as error:
            raise KafkaError(response_code(error.code)) from None
        verified = remote.guard(producer, [partition])
        try:
            codes = await remote.ask(transactional_id, producer, [tp], verify_only=not adds)
        except BaseException:  # ended: the client has gone
            verified.release()
            raise
        verified.answered(codes)
        if not adds:
            self._transactions.verified_elsewhere(codes.values())
        return verified

    async def commit(
        self,
        transactional_id: str | None,
        request: TransactionalCommit,
        *,
        version: int,
        verified: Verified | None = None,
    ) -> ErrorCode:
        """Commit offsets; return NONE when they are durable, or why they are not committed.

        `version` is the client's transaction.version, `verified` what a coordinator on another
        broker has said. Raises TransactionRefused. To be begun within a turn (`in_turn`): nothing
        comes between the partition's record and the offsets, and the client may leave meanwhile.
        """
        producer = Producer(request.producer_id, request.producer_epoch)
        tp = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.commit.group_id))
        code = ErrorCode.NONE
        try:
            if verified is not None:
                verified.check(tp, producer)
            elif version < VERSION_2:
                self._transactions.verify_append(transactional_id, producer, tp)
            else:
                code = await self._transactions.add_partitions(
                    transactional_id, producer, [tp], version=version
                )
        except KafkaError as error:
            raise TransactionRefused(error.code) from None
        if code is not ErrorCode.NONE:
            return code
        try:
            return await self._groups.commit_in_transaction(request)
        except KafkaError as error:
            return error.code
