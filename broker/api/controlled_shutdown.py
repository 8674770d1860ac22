"""ControlledShutdown (key 7): a broker that is about to stop asks the controller to take over.

In a cluster only; between brokers. Answered by the controller (others: NOT_CONTROLLER, after which
the broker asks the right one).

Behaviour
* Other leaders are elected and the broker leaves the ISRs; the answer names the partitions with
  other replicas that it still leads, and the broker asks again.
* STALE_BROKER_EPOCH for a broker that has registered anew since; BROKER_NOT_AVAILABLE for one that
  is not known.

Version notes
* v0 had a request header without a client id and is not served. v2+: the broker's epoch.
"""

from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api, CodeAlone
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests

API: Final = Api(
    key=ApiKey.CONTROLLED_SHUTDOWN,
    versions=(1, 3),
    charged=Charged.NOTHING,
    controller_only=True,
    # KafkaApis.handleControlledShutdownRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: ControlledShutdownHandler(s.in_cluster.controller.requests),
)


class ControlledShutdownHandler(CodeAlone):
    """Has the controller take over from a broker."""

    response = ControlledShutdownResponse

    def __init__(self, controller: "ControllerRequests") -> None:
        self._controller = controller

    async def __call__(
        self, ctx: RequestContext, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """The response, when the requests to the other brokers are queued. Raises KafkaError."""
        left = await self._controller.controlled_shutdown(request.broker_id, request.broker_epoch)
        return ControlledShutdownResponse(
            error_code=ErrorCode.NONE,
            remaining_partitions=many.results(
                sorted(left),
                lambda tp: RemainingPartition(topic_name=tp.topic, partition_index=tp.partition),
            ),
        )
