"""LeaderAndIsr (key 4): the controller tells this broker what to lead and what to follow.

In a cluster only; between brokers.

Behaviour
* STALE_BROKER_EPOCH for a request to an earlier registration of this broker, and
  STALE_CONTROLLER_EPOCH from a controller that has been succeeded: nothing is done.
* Each partition has its own result: `broker.membership.leadership.verdict`.
* When the response goes out the partitions can be written to, or their fetchers know of them.

Version notes
* v0-v1 list partitions, v2+ topics. v5+ have topic ids, and the response names topics by them.
* v7: whether the controller is one of KRaft; such controllers are none of a cluster on ZooKeeper.
"""

from collections.abc import Sequence
from typing import Any, Final

from broker import many
from broker.api_facts import MOST_OF_BROKERS, Api
from broker.cluster.image import PartitionImage
from broker.membership.leadership import Codes, Leadership
from broker.membership.orders import Sender, TopicOrders, partition_states
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from protocol.schema.lazy import Elements
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.LEADER_AND_ISR,
    versions=(0, 7),
    charged=Charged.NOTHING,
    most_of_brokers=MOST_OF_BROKERS,
    # KafkaApis.handleLeaderAndIsrRequest
    accesses=(CLUSTER_ACTION,),
    make=lambda s: LeaderAndIsrHandler(s.in_cluster.leadership),
)

FIRST_VERSION_WITH_IDS: Final = 5


class LeaderAndIsrHandler:
    """Has the partitions led and followed."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    async def __call__(
        self, ctx: RequestContext, request: LeaderAndIsrRequest
    ) -> LeaderAndIsrResponse:
        """The response, when it is done. Raises KafkaError for the request as a whole."""
        topics: dict[str, TopicOrders] = {}
        for name, topic_id, state in partition_states(request):
            orders = topics.get(name)
            if orders is None:
                orders = topics[name] = TopicOrders(topic_id=topic_id)
            orders.partitions[state.partition_index] = PartitionImage(
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                replicas=tuple(state.replicas),
                isr=tuple(state.isr),
                adding_replicas=tuple(state.adding_replicas),
                removing_replicas=tuple(state.removing_replicas),
                partition_epoch=state.partition_epoch,
            )
            if state.is_new:
                orders.new.add(state.partition_index)
            await PAUSE
        sender = Sender(request.controller_id, request.controller_epoch, request.broker_epoch)
        codes = await self._leadership.obey(sender, topics)
        ctx.large |= sum(map(len, codes.values())) > many.MANY
        return _response(ctx, codes, topics)

    def error_response(
        self, ctx: RequestContext, request: LeaderAndIsrRequest, code: ErrorCode
    ) -> LeaderAndIsrResponse:
        """The code, for the request as a whole and for every partition."""
        response = LeaderAndIsrResponse(error_code=code)

        def errors(name: str, states: Sequence[Any]) -> Elements[LeaderAndIsrPartitionError]:
            return _errors(name, [(state.partition_index, code) for state in states])

        if ctx.api_version >= FIRST_VERSION_WITH_IDS:
            response.topics = many.results(
                request.topic_states,
                lambda topic: LeaderAndIsrTopicError(
                    topic_id=topic.topic_id, partition_errors=errors("", topic.partition_states)
                ),
            )
        else:
            response.partition_errors = many.results(
                [(name, state.partition_index) for name, _, state in partition_states(request)],
                lambda one: LeaderAndIsrPartitionError(
                    topic_name=one[0], partition_index=one[1], error_code=code
                ),
            )
        return response


def _response(
    ctx: RequestContext, codes: Codes, topics: dict[str, TopicOrders]
) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse(error_code=ErrorCode.NONE)
    if ctx.api_version >= FIRST_VERSION_WITH_IDS:
        response.topics = many.results(
            list(codes),
            lambda name: LeaderAndIsrTopicError(
                topic_id=topics[name].topic_id,
                partition_errors=_errors("", list(codes[name].items())),
            ),
        )
    else:
        response.partition_errors = [
            error
            for name, of_topic in codes.items()
            for error in _errors(name, list(of_topic.items()))
        ]
    return response


def _errors(
    name: str, of_topic: list[tuple[int, ErrorCode]]
) -> Elements[LeaderAndIsrPartitionError]:
    return many.results(
        of_topic,
        lambda one: LeaderAndIsrPartitionError(
            topic_name=name, partition_index=one[0], error_code=one[1]
        ),
    )
