"""InitProducerId (key 22): an id for an idempotent or a transactional producer.

Behaviour
* Without a transactional id the answer is a new producer id with epoch 0, even if the producer
  brings an old id and epoch (KIP-360), as in Kafka.
* With a transactional id (S-TXN-4) the answer is its next epoch, which fences the producer that had
  the one before. An open transaction is aborted first; meanwhile the answer is
  CONCURRENT_TRANSACTIONS, and the client asks again.
* TRANSACTIONAL_ID_AUTHORIZATION_FAILED for who may not write with the transactional id. Without
  one a client needs IDEMPOTENT_WRITE of the cluster, or WRITE of any topic (KIP-679), else it is
  CLUSTER_AUTHORIZATION_FAILED.
* INVALID_TRANSACTION_TIMEOUT above `transaction.max.timeout.ms`.
* INVALID_REQUEST for an empty transactional id, and for a producer id without an epoch or an epoch
  without an id.

Version notes
* v3+: the producer may bring its id and epoch, to go on after an error (KIP-360).
* v4+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH.
"""

from functools import partial
from typing import Final

from broker.api_facts import Api
from broker.cluster.producer_ids import ProducerIdAllocator, decide_with_ids
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.errors import FENCED_SINCE_INIT, for_version
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

API: Final = Api(
    key=ApiKey.INIT_PRODUCER_ID,
    versions=(0, 5),
    # KafkaApis.handleInitProducerIdRequest
    asks=(
        Question(ResourceType.TRANSACTIONAL_ID, Operation.WRITE),
        Question(ResourceType.CLUSTER, Operation.IDEMPOTENT_WRITE),
        Question(ResourceType.TOPIC, Operation.WRITE),
    ),
    make=lambda s: InitProducerIdHandler(
        s.producer_ids, s.transaction_coordinator, allowed=s.allowed
    ),
)


class InitProducerIdHandler:
    """Hands out producer ids; those of a transactional id come from the transaction coordinator."""

    def __init__(
        self,
        producer_ids: ProducerIdAllocator,
        transactions: TransactionCoordinator,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._producer_ids = producer_ids
        self._transactions = transactions

    async def __call__(
        self, ctx: RequestContext, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        """The response, when the producer's id and epoch are durable."""
        brings_id = request.producer_id != NO_PRODUCER_ID
        transactional_id = request.transactional_id
        self._check_allowed(ctx, transactional_id)
        if transactional_id == "" or brings_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if transactional_id is None:
            return _response(ErrorCode.NONE, await self._producer_ids.take(), 0)
        ctx.released = True
        code, producer_id, epoch = await decide_with_ids(
            self._producer_ids,
            partial(
                self._transactions.init_producer_id,
                transactional_id,
                request.transaction_timeout_ms,
                Producer(request.producer_id, request.producer_epoch) if brings_id else None,
            ),
        )
        return _response(for_version(code, ctx.api_version, FENCED_SINCE_INIT), producer_id, epoch)

    def _check_allowed(self, ctx: RequestContext, transactional_id: str | None) -> None:
        """Raise KafkaError if the client may not have an id."""
        allowed = self._allowed
        if allowed is None:
            return
        if transactional_id is not None:
            if not allowed(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif not (
            allowed.quietly(ctx, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
            or allowed.of_any(ctx, Operation.WRITE, ResourceType.TOPIC)
        ):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def error_response(
        self, ctx: RequestContext, request: InitProducerIdRequest, code: ErrorCode
    ) -> InitProducerIdResponse:
        """The code and no id."""
        code = for_version(code, ctx.api_version, FENCED_SINCE_INIT)
        return _response(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def _response(code: ErrorCode, producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
