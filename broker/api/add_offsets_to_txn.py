"""AddOffsetsToTxn (key 25): say that a transaction is going to commit offsets of a group.

Behaviour (S-TXN-5)
* The group's partition of `__consumer_offsets` becomes part of the transaction, so that it gets a
  marker; the codes are those of AddPartitionsToTxn.

Version notes
* v2+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH. v4: as v3; the code that it adds,
  TRANSACTION_ABORTABLE, has no cause here.
"""

from typing import Final

from broker.api_facts import Api
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.errors import FENCED_SINCE_OTHERS, for_version
from broker.request import RequestContext
from broker.security.access import READ_GROUP, WRITE_TRANSACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from protocol.types import OFFSETS_TOPIC, TopicPartition

API: Final = Api(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    versions=(0, 4),
    # KafkaApis.handleAddOffsetsToTxnRequest
    accesses=(
        WRITE_TRANSACTION,
        READ_GROUP,
    ),
    make=lambda s: AddOffsetsToTxnHandler(s.transaction_coordinator, s.group_coordinator),
)


class AddOffsetsToTxnHandler:
    """Has the coordinator add the partition of a group's offsets to a transaction."""

    def __init__(self, transactions: TransactionCoordinator, groups: GroupCoordinator) -> None:
        self._transactions = transactions
        self._groups = groups

    async def __call__(
        self, ctx: RequestContext, request: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse:
        """The response, when the record is durable."""
        tp = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.group_id))
        producer = Producer(request.producer_id, request.producer_epoch)
        added = self._transactions.add_partitions(request.transactional_id, producer, [tp])
        ctx.released = True
        return self.error_response(ctx, request, await added.parked())

    def error_response(
        self, ctx: RequestContext, request: AddOffsetsToTxnRequest, code: ErrorCode
    ) -> AddOffsetsToTxnResponse:
        """The code."""
        code = for_version(code, ctx.api_version, FENCED_SINCE_OTHERS)
        return AddOffsetsToTxnResponse(error_code=code)
