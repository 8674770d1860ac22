"""DescribeTransactions (key 65): state, producer and partitions of transactional ids.

Behaviour (KIP-664): each id has its own result; TRANSACTIONAL_ID_NOT_FOUND for an unknown one. The
partitions are those of the open transaction, or of the decided one whose markers are being written,
without those of topics that the client may not describe. TRANSACTIONAL_ID_AUTHORIZATION_FAILED for
an id that it may not describe.
"""

from typing import Final

from broker import many
from broker.api_facts import Api
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
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
    asks=(
        Question(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE),
        Question(ResourceType.TOPIC, Operation.DESCRIBE),
    ),
    make=lambda s: DescribeTransactionsHandler(s.transaction_coordinator, allowed=s.allowed),
)

FEW: Final = 16
"""Ids that are described at once if they have few partitions together."""


class DescribeTransactionsHandler:
    """Describes transactional ids with state, producer and partitions, each from its shard."""

    def __init__(
        self, transactions: TransactionCoordinator, *, allowed: Permissions | None = None
    ) -> None:
        self._allowed = allowed
        self._transactions = transactions

    def __call__(
        self, ctx: RequestContext, request: DescribeTransactionsRequest
    ) -> DescribeTransactionsResponse:
        """The response; ids that are many, or have many partitions, are described one at a time,
        while it is encoded."""
        names = request.transactional_ids

        def described(name: str) -> TransactionState:
            return self._describe(ctx, name)

        if len(names) <= FEW and sum(map(self._partitions, names)) <= many.MANY:
            return DescribeTransactionsResponse(transaction_states=list(map(described, names)))
        ctx.large = True
        return DescribeTransactionsResponse(transaction_states=Lazy(names, described))

    def _partitions(self, transactional_id: str) -> int:
        """The number of partitions of a transaction; 0 if there is none."""
        try:
            return len(self._transactions.describe(transactional_id).partitions)
        except KafkaError:
            return 0

    def _describe(self, ctx: RequestContext, transactional_id: str) -> TransactionState:
        allowed = self._allowed
        if allowed is not None and not allowed(
            ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
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
                TopicData(topic=topic, partitions=numbers)
                for topic, numbers in topics.items()
                if allowed is None or allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic)
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
