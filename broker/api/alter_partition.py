"""AlterPartition (key 56): a leader asks the controller to change the in-sync replicas.

In a cluster only; between brokers. Answered by the controller (others: NOT_CONTROLLER).

Behaviour
* STALE_BROKER_EPOCH for the request of a broker that is not registered, or has registered anew.
* Each partition has its own result, with what holds now: FENCED_LEADER_EPOCH,
  INVALID_UPDATE_VERSION for an older partition epoch, INELIGIBLE_REPLICA for a member that does not
  live, … `broker.controller` has the rules.

Version notes
* v0-v1 name topics, v2+ have their ids. v3+: the epochs of the members (KIP-903).
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from protocol.api_keys import ApiKey
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests

API: Final = Api(
    key=ApiKey.ALTER_PARTITION,
    versions=(0, 3),
    charged=Charged.NOTHING,
    controller_only=True,
    # KafkaApis.handleAlterPartitionRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: AlterPartitionHandler(s.in_cluster.controller.requests),
)


class AlterPartitionHandler(CodeAlone):
    """Has the controller change ISRs."""

    response = AlterPartitionResponse

    def __init__(self, controller: "ControllerRequests") -> None:
        self._controller = controller

    async def __call__(
        self, ctx: RequestContext, request: AlterPartitionRequest
    ) -> AlterPartitionResponse:
        """The response, when the change is stored. Raises KafkaError."""
        return await self._controller.alter_partition(request, ctx.api_version)
