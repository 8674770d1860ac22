"""ListPartitionReassignments (key 46): which partitions are being moved to other brokers.

Behaviour (KIP-455)
* In a cluster the controller answers (others: NOT_CONTROLLER), with those that are under way among
  the partitions asked for; null asks for all.
* Alone the list is always empty. Moves between the broker's log directories are not reassignments;
  DescribeLogDirs shows them.
"""

from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import DESCRIBE_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests


API: Final = Api(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    controller_only=True,
    # ControllerApis.handleListPartitionReassignments
    accesses=(DESCRIBE_CLUSTER,),
    make=lambda s: ListPartitionReassignmentsHandler(s.controller_requests),
)


class ListPartitionReassignmentsHandler:
    """Lists what the controller reassigns; nothing where the broker stands alone."""

    def __init__(self, controller: "ControllerRequests | None") -> None:
        """`controller`: None where the broker stands alone."""
        self._controller = controller

    async def __call__(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        """The response, at once. Raises KafkaError."""
        if self._controller is None:
            return ListPartitionReassignmentsResponse(topics=[])
        asked: list[TopicPartition] | None = None
        if request.topics is not None:
            asked = [
                TopicPartition(topic.name, index)
                for topic in request.topics
                for index in topic.partition_indexes
            ]
        found = await self._controller.list_reassignments(asked)
        by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
        for tp, assignment in found.items():
            by_topic.setdefault(tp.topic, []).append(
                OngoingPartitionReassignment(
                    partition_index=tp.partition,
                    replicas=list(assignment.replicas),
                    adding_replicas=list(assignment.adding),
                    removing_replicas=list(assignment.removing),
                )
            )
        ctx.large |= len(found) > many.MANY
        return ListPartitionReassignmentsResponse(
            topics=[
                OngoingTopicReassignment(name=name, partitions=partitions)
                for name, partitions in by_topic.items()
            ]
        )

    def error_response(
        self, ctx: RequestContext, request: ListPartitionReassignmentsRequest, code: ErrorCode
    ) -> ListPartitionReassignmentsResponse:
        """The code, and the partitions of the request without replicas."""
        return _refused(request, code)


def _refused(
    request: ListPartitionReassignmentsRequest, code: ErrorCode
) -> ListPartitionReassignmentsResponse:
    def empty(topic: ListPartitionReassignmentsTopics) -> OngoingTopicReassignment:
        return OngoingTopicReassignment(
            name=topic.name,
            partitions=many.results(
                topic.partition_indexes,
                lambda index: OngoingPartitionReassignment(
                    partition_index=index, replicas=[], adding_replicas=[], removing_replicas=[]
                ),
            ),
        )

    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.text,
        topics=many.results(request.topics or (), empty),
    )
