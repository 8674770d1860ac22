"""StopReplica (key 5): this broker is a replica no longer, or the topic is being deleted.

In a cluster only; between brokers.

Behaviour
* STALE_BROKER_EPOCH for a request to an earlier registration of this broker, and
  STALE_CONTROLLER_EPOCH from a controller that has been succeeded: nothing is done.
* Each partition has its own result: `broker.membership.stopping.verdict`. One that is not here is
  fine.

Version notes
* v0 lists partitions, v1+ topics; before v3 the logs of all are deleted or none.
* v3+: a leader epoch per partition (KIP-570), so that a late request stops nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.leader_and_isr import NO_EPOCH
from broker.membership.orders import Sender, StopOrder
from broker.membership.stopping import Stopping
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.STOP_REPLICA,
    versions=(0, 4),
    charged=Charged.NOTHING,
    # KafkaApis.handleStopReplicaRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: StopReplicaHandler(s.in_cluster.stopping),
)

FIRST_VERSION_BY_TOPIC: Final = 1
FIRST_VERSION_WITH_STATES: Final = 3


class StopReplicaHandler:
    """Has replicas stopped."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping

    async def __call__(
        self, ctx: RequestContext, request: StopReplicaRequest
    ) -> StopReplicaResponse:
        """The response, when it is done. Raises KafkaError for the request as a whole."""
        orders: dict[TopicPartition, StopOrder] = {}
        for tp, order in _orders(ctx, request):
            orders[tp] = order
            await PAUSE
        sender = Sender(request.controller_id, request.controller_epoch, request.broker_epoch)
        codes = await self._stopping.obey(sender, orders)
        ctx.large |= len(codes) > many.MANY
        return _response(codes)

    def error_response(
        self, ctx: RequestContext, request: StopReplicaRequest, code: ErrorCode
    ) -> StopReplicaResponse:
        """The code, for the request as a whole and for every partition."""
        response = _response({tp: code for tp, _ in _orders(ctx, request)})
        response.error_code = code
        return response


def _orders(
    ctx: RequestContext, request: StopReplicaRequest
) -> Iterator[tuple[TopicPartition, StopOrder]]:
    if ctx.api_version >= FIRST_VERSION_WITH_STATES:
        for topic in request.topic_states:
            for state in topic.partition_states:
                yield (
                    TopicPartition(topic.topic_name, state.partition_index),
                    StopOrder(state.leader_epoch, state.delete_partition),
                )
        return
    order = StopOrder(NO_EPOCH, request.delete_partitions)
    if ctx.api_version >= FIRST_VERSION_BY_TOPIC:
        for named in request.topics:
            for index in named.partition_indexes:
                yield TopicPartition(named.name, index), order
        return
    for one in request.ungrouped_partitions:
        yield TopicPartition(one.topic_name, one.partition_index), order


def _response(codes: Mapping[TopicPartition, ErrorCode]) -> StopReplicaResponse:
    def error(item: tuple[TopicPartition, ErrorCode]) -> StopReplicaPartitionError:
        tp, code = item
        return StopReplicaPartitionError(
            topic_name=tp.topic, partition_index=tp.partition, error_code=code
        )

    return StopReplicaResponse(
        error_code=ErrorCode.NONE, partition_errors=many.results(list(codes.items()), error)
    )
