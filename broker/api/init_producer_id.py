"""InitProducerId (key 22): an id for an idempotent or a transactional producer.

Versions: 0-5.

Behaviour
* Without a transactional id the answer is a new producer id with epoch 0, even if the producer
  brings an old id and epoch (KIP-360), as in Kafka.
* With a transactional id (S-TXN-4) the answer is its next epoch, which fences the producer that had
  the one before. An open transaction is aborted first; meanwhile the answer is
  CONCURRENT_TRANSACTIONS, and the client asks again.
* INVALID_TRANSACTION_TIMEOUT above `transaction.max.timeout.ms`.
* INVALID_REQUEST for an empty transactional id, and for a producer id without an epoch or an epoch
  without an id.

Version notes
* v3+: the producer may bring its id and epoch, to go on after an error (KIP-360).
* v4+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH.
"""

from typing import Any, Final

from broker.api.answers import ParkedAnswer
from broker.api.producer_id_blocks import answer_with_ids
from broker.api.transaction_errors import FENCED_SINCE_INIT, for_version
from broker.cluster.producer_ids import ProducerIdAllocator
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.request import Pending, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

VERSIONS: Final = (0, 5)

_Reply = InitProducerIdResponse | Pending


class InitProducerIdHandler:
    """Hands out producer ids; those of a transactional id come from the transaction coordinator."""

    def __init__(
        self, producer_ids: ProducerIdAllocator, transactions: TransactionCoordinator
    ) -> None:
        self._producer_ids = producer_ids
        self._transactions = transactions

    async def __call__(self, ctx: RequestContext, request: InitProducerIdRequest) -> Any:
        """The response, a `Pending`, or a coroutine if a block of ids must be recorded first."""
        brings_id = request.producer_id != NO_PRODUCER_ID
        if request.transactional_id == "" or (
            brings_id != (request.producer_epoch != NO_PRODUCER_EPOCH)
        ):
            return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
        return await answer_with_ids(
            self._producer_ids,
            lambda: self._answer(ctx, request),
            lambda code: self.error_response(ctx, request, code),
        )

    def _answer(self, ctx: RequestContext, request: InitProducerIdRequest) -> _Reply:
        if request.transactional_id is None:
            return _response(ErrorCode.NONE, self._producer_ids.next_id(), 0)
        expected = None
        if request.producer_id != NO_PRODUCER_ID:
            expected = Producer(request.producer_id, request.producer_epoch)
        version = ctx.api_version
        answer = ParkedAnswer(
            lambda reply: _response(
                for_version(reply[0], version, FENCED_SINCE_INIT), reply[1], reply[2]
            )
        )
        self._transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            expected,
            lambda code, producer_id, epoch: answer((code, producer_id, epoch)),
        )
        return answer.handed_over()

    def error_response(
        self, ctx: RequestContext, request: InitProducerIdRequest, code: ErrorCode
    ) -> InitProducerIdResponse:
        """The code and no id."""
        code = for_version(code, ctx.api_version, FENCED_SINCE_INIT)
        return _response(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def _response(code: ErrorCode, producer_id: int, epoch: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)
