"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop doing so.

Behaviour in a cluster: the controller begins, changes and cancels reassignments (others answer
NOT_CONTROLLER); the answer does not wait for the replicas to catch up.

Alone (KIP-455)
* The replica set that a partition already has is accepted and changes nothing:
  `kafka-reassign-partitions` sends it before it moves a partition between log directories.
* INVALID_REPLICA_ASSIGNMENT for a set that is empty, names a broker twice or names one that does
  not live; UNKNOWN_TOPIC_OR_PARTITION.
* Null replicas ask to stop a reassignment: NO_REASSIGNMENT_IN_PROGRESS, because none ever is.
* Each partition has its own result.

Version notes
* v1 (KIP-860): INVALID_REPLICATION_FACTOR for a set of another size if the request forbids it.
  Alone every such set is an INVALID_REPLICA_ASSIGNMENT already.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests


API: Final = Api(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    controller_only=True,
    # ControllerApis.handleAlterPartitionReassignments
    accesses=(ALTER_CLUSTER,),
    make=lambda s: AlterPartitionReassignmentsHandler(s.image, s.controller_requests),
)

MAX_SHOWN: Final = 100
"""Replicas that an error message lists."""


Flaw = Callable[[TopicPartition, Sequence[int] | None], KafkaError | None]
"""Returns why a partition is not reassigned to these replicas; None if it is."""


class AlterPartitionReassignmentsHandler:
    """Has the controller reassign partitions.

    Alone it accepts the replicas that a partition already has, and refuses any others.
    """

    def __init__(self, image: MetadataImage, controller: "ControllerRequests | None") -> None:
        """`controller`: None where the broker stands alone."""
        self._image = image
        self._controller = controller

    async def __call__(
        self, ctx: RequestContext, request: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        """The response, when the reassignments are under way. Raises KafkaError."""
        flaw_of: Flaw = self._flaw_alone
        if self._controller is not None:
            flaw_of = await self._reassign(ctx, request, self._controller)

        def result(name: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
            flaw = flaw_of(TopicPartition(name, asked.partition_index), asked.replicas)
            return ReassignablePartitionResponse(
                partition_index=asked.partition_index,
                error_code=ErrorCode.NONE if flaw is None else flaw.code,
                error_message=None if flaw is None else str(flaw),
            )

        def of_topic(topic: ReassignableTopic) -> ReassignableTopicResponse:
            return ReassignableTopicResponse(
                name=topic.name,
                partitions=many.results(topic.partitions, partial(result, topic.name)),
            )

        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            responses=many.results(request.topics, of_topic),
        )

    async def _reassign(
        self,
        ctx: RequestContext,
        request: AlterPartitionReassignmentsRequest,
        controller: "ControllerRequests",
    ) -> Flaw:
        """Begin and cancel reassignments; return what came of each. Raises KafkaError."""
        wanted: dict[TopicPartition, tuple[int, ...] | None] = {}
        for topic in request.topics:
            for one in topic.partitions:
                replicas = None if one.replicas is None else tuple(one.replicas)
                wanted[TopicPartition(topic.name, one.partition_index)] = replicas
                await PAUSE
        may_resize = request.allow_replication_factor_change
        outcomes = await controller.alter_reassignments(wanted, may_resize=may_resize)
        ctx.large |= len(wanted) > many.MANY
        return lambda tp, replicas: outcomes.get(tp)

    def _flaw_alone(self, tp: TopicPartition, replicas: Sequence[int] | None) -> KafkaError | None:
        """Why `replicas` are not the set that `tp` already has."""
        if not self._image.has(tp):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {tp}.")
        if replicas is None:
            code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            return KafkaError(code, code.text)
        if not replicas:
            return _invalid("The manual partition assignment includes an empty replica list.")
        living = {broker.broker_id for broker in self._image.brokers()}
        unknown = set(replicas) - living
        if unknown:
            return _invalid(
                "The manual partition assignment includes broker "
                f"{min(unknown)}, but no such broker is registered."
            )
        if len(set(replicas)) < len(replicas):
            return _invalid(
                "The manual partition assignment includes a broker more than once: "
                f"{replicas[:MAX_SHOWN]}."
            )
        return None

    def error_response(
        self, ctx: RequestContext, request: AlterPartitionReassignmentsRequest, code: ErrorCode
    ) -> AlterPartitionReassignmentsResponse:
        """The code, for the response as a whole and for every partition."""
        return _refused(request, code)


def _refused(
    request: AlterPartitionReassignmentsRequest, code: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    def refused(topic: ReassignableTopic) -> ReassignableTopicResponse:
        return ReassignableTopicResponse(
            name=topic.name,
            partitions=many.results(
                topic.partitions,
                lambda asked: ReassignablePartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=code,
                    error_message=code.text,
                ),
            ),
        )

    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.text,
        responses=many.results(request.topics, refused),
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
