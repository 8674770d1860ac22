"""AllocateProducerIds (key 67): a broker asks the controller for a block of producer ids.

In a cluster only; between brokers. Answered by the controller (others: NOT_CONTROLLER).

Behaviour
* The block is written to /latest_producer_id_block before it is handed out, so no id is used twice.
* STALE_BROKER_EPOCH for a broker that has registered anew; BROKER_ID_NOT_REGISTERED for one that is
  not known.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests

API: Final = Api(
    key=ApiKey.ALLOCATE_PRODUCER_IDS,
    versions=(0, 0),
    controller_only=True,
    # KafkaApis.handleAllocateProducerIdsRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: AllocateProducerIdsHandler(s.in_cluster.controller.requests),
)


class AllocateProducerIdsHandler(CodeAlone):
    """Has the controller hand out a block."""

    response = AllocateProducerIdsResponse

    def __init__(self, controller: "ControllerRequests") -> None:
        self._controller = controller

    async def __call__(
        self, ctx: RequestContext, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """The response, when the block is stored. Raises KafkaError."""
        first, length = await self._controller.allocate_producer_ids(
            request.broker_id, request.broker_epoch
        )
        return AllocateProducerIdsResponse(
            error_code=ErrorCode.NONE, producer_id_start=first, producer_id_len=length
        )
