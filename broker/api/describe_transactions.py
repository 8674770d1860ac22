"""DescribeTransactions (key 65): state, producer and partitions of transactional ids.

Behaviour (KIP-664): each id has its own result; TRANSACTIONAL_ID_NOT_FOUND for an unknown one. The
partitions are those of the open transaction, or of the decided one whose markers are being written.
"""

from typing import Final

from broker.api_facts import Api
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.request import RequestContext
from broker.security.access import Access, Operation, ResourceType, each
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from protocol.schema.lazy import Lazy

API: Final = Api(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    versions=(0, 0),
    ends_with_client=True,
    # KafkaApis.handleDescribeTransactionsRequest
    accesses=(
        Access(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE, each("transactional_ids")),
    ),
    make=lambda s: DescribeTransactionsHandler(s.transaction_coordinator),
)

FEW: Final = 16
"""Ids that are described at once: one of them may have a thousand partitions."""


class DescribeTransactionsHandler:
    """Describes transactional ids with state, producer and partitions, each from its shard."""

    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions

    async def __call__(
        self, ctx: RequestContext, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        """The response; many ids are described one at a time, while it is encoded."""
        names = request.transactional_ids
        if len(names) <= FEW:
            return DescribeTransactionsResponse(
                transaction_states=[self._describe(name) for name in names]
            )
        ctx.large = True
        return DescribeTransactionsResponse(transaction_states=Lazy(names, self._describe))

    def _describe(self, transactional_id: str) -> TransactionState:
        try:
            value = self._transactions.describe(transactional_id)
        except KafkaError as error:
            return _refused(transactional_id, error.code)
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(value.partitions):
            topics.setdefault(topic, []).append(partition)
        return TransactionState(
            transactional_id=transactional_id,
            transaction_state=value.state.label,
            transaction_timeout_ms=value.timeout_ms,
            transaction_start_time_ms=value.start_ms,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            topics=[
                TopicData(topic=topic, partitions=numbers) for topic, numbers in topics.items()
            ],
        )

    def error_response(
        self, ctx: RequestContext, request: DescribeTransactionsRequest, code: ErrorCode
    ) -> DescribeTransactionsResponse:
        """`code` for every id."""
        return DescribeTransactionsResponse(
            transaction_states=[_refused(name, code) for name in request.transactional_ids]
        )


def _refused(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=code)
