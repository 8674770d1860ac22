"""InitProducerId (key 22): an id for an idempotent producer.

Versions: 0-5.

Behaviour
* Without a transactional id: always a new producer id with epoch 0, also when an old pair is
  brought along (KIP-360), as Kafka's coordinator answers.
* With a transactional id: this broker has no transactions yet. UNSUPPORTED_VERSION is an answer
  that every client gives up on at once and names ("The version of API is not supported"), while
  COORDINATOR_NOT_AVAILABLE would be retried until a timeout.
* An empty transactional id, or an id without its epoch (or the other way round) is an
  INVALID_REQUEST.

Version notes
* v3+: the producer may bring its id and epoch.
"""

from typing import Any, Final

from broker.cluster.producer_ids import ProducerIdAllocator
from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdResponse
from protocol.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

VERSIONS: Final = (0, 5)


class InitProducerIdHandler:
    """See the module."""

    def __init__(self, producer_ids: ProducerIdAllocator) -> None:
        self._producer_ids = producer_ids

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, or a coroutine when a new block of ids must be recorded first."""
        if request.transactional_id == "" or (
            (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
        ):
            return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            return self.error_response(ctx, request, ErrorCode.UNSUPPORTED_VERSION)
        producer_id = self._producer_ids.take_nowait()
        if producer_id is None:
            return self._take(ctx, request)
        return _granted(producer_id)

    async def _take(self, ctx: RequestContext, request: Any) -> Any:
        try:
            return _granted(await self._producer_ids.take())
        except KafkaError as error:
            return self.error_response(ctx, request, error.code)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code and no id."""
        return InitProducerIdResponse(
            error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )


def _granted(producer_id: int) -> Any:
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )
