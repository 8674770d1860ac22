"""ElectLeaders (key 43): have leaders of partitions elected anew (KIP-183, KIP-460).

Behaviour in a cluster: the controller elects (others answer NOT_CONTROLLER), and the answer waits
until the image shows the leaders, or the timeout has passed (REQUEST_TIMED_OUT).

Alone this broker leads every partition whose log it has, so there is never another leader to elect,
and the answer says why not
* ELECTION_NOT_NEEDED where the wanted leader leads: the first replica for a preferred election, any
  replica for an unclean one.
* PREFERRED_LEADER_NOT_AVAILABLE where the first replica is on a broker that does not live, or in a
  log directory that failed; ELIGIBLE_LEADERS_NOT_AVAILABLE where no replica can lead.
* UNKNOWN_TOPIC_OR_PARTITION, with the missing name. An unknown type of election is an
  INVALID_REQUEST for everything.
* Null asks for all partitions: the answer has every topic, but only the partitions that the wanted
  leader does not lead. An empty list asks for nothing.

Version notes
* v0: always the preferred leader. v1+: an error for the response as a whole.
"""

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.elect_leaders import (
    ElectionPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectTopicPartitions,
    ReplicaElectionResult,
)
from protocol.schema.lazy import Elements
from protocol.types import TopicPartition
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.controller.controller_requests import ControllerRequests
    from broker.membership.image_changes import ImageChanges
    from broker.request import Handler
    from broker.services import Services


def _handler(services: "Services") -> "Handler":
    cluster = services.cluster
    if cluster is None:
        return ElectLeadersHandler(services.image)
    return ElectingHandler(services.image, cluster.controller.requests, cluster.image_changes)


API: Final = Api(
    key=ApiKey.ELECT_LEADERS,
    versions=(0, 2),
    controller_only=True,
    # ControllerApis.handleElectLeaders
    accesses=(ALTER_CLUSTER,),
    make=_handler,
)

_FIRST_VERSION_WITH_TYPES: Final = 1


class ElectionType(IntEnum):
    """Which replica is to lead."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectLeadersHandler:
    """Says of each partition why its leader stays as it is."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        """The response, at once."""
        if request.topic_partitions is not None and not request.topic_partitions:
            return ElectLeadersResponse()
        kind = _kind(ctx, request)
        if kind is None:
            return _unknown_kind(request)
        if request.topic_partitions is None:
            return ElectLeadersResponse(replica_election_results=await self._all(kind))
        return ElectLeadersResponse(
            replica_election_results=many.results(
                request.topic_partitions, lambda topic: self._named(topic, kind)
            )
        )

    async def _all(self, kind: ElectionType) -> Elements[ReplicaElectionResult]:
        """Every topic, with the partitions that have not the leader that they should have."""
        results = []
        for topic in list(self._image.topics()):
            left = []
            for index, partition in topic.partitions.items():
                code = _outcome(partition, kind)
                if code is not ErrorCode.ELECTION_NOT_NEEDED:
                    left.append(_partition_result(index, code))
                await PAUSE
            results.append(ReplicaElectionResult(topic=topic.name, partition_result=left))
        return results

    def _named(self, asked: ElectTopicPartitions, kind: ElectionType) -> ReplicaElectionResult:
        topic = self._image.topic(asked.topic)
        return ReplicaElectionResult(
            topic=asked.topic,
            partition_result=many.results(
                asked.partitions, lambda index: _result(asked.topic, topic, index, kind)
            ),
        )

    def error_response(
        self, ctx: RequestContext, request: ElectLeadersRequest, code: ErrorCode
    ) -> ElectLeadersResponse:
        """The code for the response as a whole and for every partition."""
        return _refused(request, code, code.text)


class ElectingHandler(ElectLeadersHandler):
    """Has the controller elect leaders."""

    def __init__(
        self, image: MetadataImage, controller: "ControllerRequests", changes: "ImageChanges"
    ) -> None:
        super().__init__(image)
        self._controller = controller
        self._changes = changes

    async def __call__(
        self, ctx: RequestContext, request: ElectLeadersRequest
    ) -> ElectLeadersResponse:
        """The response, when the image shows the leaders. Raises KafkaError."""
        kind = _kind(ctx, request)
        if kind is None:
            return _unknown_kind(request)
        asked: dict[TopicPartition, None] | None = None
        if request.topic_partitions is not None:
            asked = {}
            for topic in request.topic_partitions:
                for index in topic.partitions:
                    asked[TopicPartition(topic.topic, index)] = None
                    await PAUSE
        outcomes = await self._controller.elect_leaders(kind, asked)
        elected = [tp for tp, error in outcomes.items() if error is None]
        await self._changes.wait_until(
            lambda: all(self._leads(tp, kind) for tp in elected), request.timeout_ms / 1000
        )
        by_topic: dict[str, list[ElectionPartitionResult]] = {}
        for tp, error in outcomes.items():
            if error is None and not self._leads(tp, kind):
                error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            if asked is None and error is not None and error.code == ErrorCode.ELECTION_NOT_NEEDED:
                continue  # the answer about all partitions has only those with news
            code = ErrorCode.NONE if error is None else error.code
            by_topic.setdefault(tp.topic, []).append(
                ElectionPartitionResult(
                    partition_id=tp.partition,
                    error_code=code,
                    error_message=None if error is None else str(error),
                )
            )
            await PAUSE
        ctx.large |= len(outcomes) > many.MANY
        return ElectLeadersResponse(
            replica_election_results=many.results(
                list(by_topic.items()),
                lambda item: ReplicaElectionResult(topic=item[0], partition_result=item[1]),
            )
        )

    def _leads(self, tp: TopicPartition, kind: ElectionType) -> bool:
        """Whether the image shows the leader that was to be elected."""
        topic = self._image.topic(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is None:
            return False
        if kind is ElectionType.PREFERRED:
            return partition.leader == partition.replicas[0]
        return partition.leader >= 0


def _kind(ctx: RequestContext, request: ElectLeadersRequest) -> ElectionType | None:
    """The kind of election in the request; None if it is unknown."""
    asked = request.election_type if ctx.api_version >= _FIRST_VERSION_WITH_TYPES else 0
    return ElectionType(asked) if asked in list(ElectionType) else None


def _unknown_kind(request: ElectLeadersRequest) -> ElectLeadersResponse:
    unknown = f"Unknown election type {request.election_type}"
    return _refused(request, ErrorCode.INVALID_REQUEST, unknown)


def _result(
    name: str, topic: TopicImage | None, index: int, kind: ElectionType
) -> ElectionPartitionResult:
    if topic is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
        return _partition_result(index, code, message)
    partition = topic.partitions.get(index)
    if partition is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
        return _partition_result(index, code, message)
    return _partition_result(index, _outcome(partition, kind))


def _outcome(partition: PartitionImage, kind: ElectionType) -> ErrorCode:
    if kind is ElectionType.PREFERRED:
        if partition.leader == partition.replicas[0]:
            return ErrorCode.ELECTION_NOT_NEEDED
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    if partition.leader != NO_LEADER:
        return ErrorCode.ELECTION_NOT_NEEDED
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def _partition_result(
    index: int, code: ErrorCode, message: str | None = None
) -> ElectionPartitionResult:
    return ElectionPartitionResult(
        partition_id=index, error_code=code, error_message=message or code.text
    )


def _refused(request: ElectLeadersRequest, code: ErrorCode, message: str) -> ElectLeadersResponse:
    def topic_result(asked: ElectTopicPartitions) -> ReplicaElectionResult:
        return ReplicaElectionResult(
            topic=asked.topic,
            partition_result=many.results(
                asked.partitions, lambda index: _partition_result(index, code, message)
            ),
        )

    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=many.results(request.topic_partitions or (), topic_result),
    )
