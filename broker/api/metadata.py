"""Metadata (key 3): brokers, topics, leaders.

Behaviour (S-META-1)
* Topics by name, by id (v12+), or all of them. An unknown name is UNKNOWN_TOPIC_OR_PARTITION, a
  name that no topic can have INVALID_TOPIC_EXCEPTION, an unknown id UNKNOWN_TOPIC_ID.
* A missing topic is created if `auto.create.topics.enable` and the request allow it. Kafka then
  answers LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION at first, because the leaders get
  ready elsewhere; here they are ready before the answer goes out, so it shows the new topic.
* Brokers have the address for the client's own listener (`broker.cluster.endpoints`); a leader
  without that listener is LISTENER_NOT_FOUND (before v6 LEADER_NOT_AVAILABLE).
* Authorized operations are INT_MIN unless the request asks for them.

A topic is described once for all who ask alike: its bytes are kept with its image, so a change of
the topic drops them, and are put together in the reply.

Version notes
* v0: an empty list means all topics. v1+: null means all, an empty list none.
* v4+: the request says whether topics may be created; before, only the broker's configuration does.
* v10, v11: INVALID_REQUEST unless every topic has a name and a zero id.
* v8-v10: authorized operations of the cluster (later in DescribeCluster).
* v13: the response as a whole has an error code.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeVar

from broker import many
from broker.api_facts import Api
from broker.cluster.controller import Controller
from broker.cluster.endpoints import Endpoint, endpoint_for
from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from broker.cluster.topic_names import invalid_name_reason
from broker.request import RequestContext
from broker.security import authorized_operations
from broker.security.access import (
    Access,
    Name,
    Operation,
    ResourceType,
    answered,
    each_or_every,
)
from config.broker_config import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.schema import Codec, Encoded
from protocol.schema.lazy import Chained, Elements
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

_FIRST_VERSION_WITH_IDS = 12
_FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6

_MOST_FORMS: Final = 4
"""Clients of a cluster ask in few versions, so few forms of a topic are kept."""
_LARGE_BYTES: Final = 1 << 20
"""A reply of more bytes is put together in turns."""

_Key = TypeVar("_Key")


class _Form(NamedTuple):
    """What a description of a topic depends on beside the topic's image."""

    version: int
    reachable: frozenset[int]
    """The brokers that have an address for the client's listener."""
    operations: int
    """The topic's authorized operations."""


@cache
def _codec_of_topic(version: int) -> Codec[MetadataResponseTopic]:
    return MetadataResponse.element_codec("topics", version)


def _described(ctx: RequestContext, request: MetadataRequest) -> Iterable[Name]:
    """Yield the topics asked for. An empty array in v0, and null from v1 on, ask for all topics."""
    if ctx.api_version == 0 and not request.topics:
        return answered(ctx, request)
    return each_or_every("topics", "name", "topic_id")(ctx, request)


API: Final = Api(
    key=ApiKey.METADATA,
    versions=(0, 13),
    # KafkaApis.handleTopicMetadataRequest
    accesses=(Access(ResourceType.TOPIC, Operation.DESCRIBE, _described),),
    make=lambda s: MetadataHandler(s.image, s.config, s.controller),
)


class MetadataHandler:
    """Describes brokers and topics of the metadata image; has missing topics made if asked to."""

    def __init__(self, image: MetadataImage, config: BrokerConfig, controller: Controller) -> None:
        self._image = image
        self._config = config
        self._controller = controller

    async def __call__(self, ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
        """The response, when the topics that must be created first exist."""
        asked = request.topics
        if asked is None or (ctx.api_version == 0 and not asked):
            return await self._response(ctx, request, list(self._image.topics()), [])
        names: dict[str, None] = {}
        ids: dict[bytes, None] = {}
        missing = []
        for topic in asked:
            name = topic.name
            if topic.topic_id != ZERO_UUID:
                ids[topic.topic_id] = None
            elif name is not None and name not in names:
                names[name] = None
                if self._image.topic(name) is None:
                    missing.append(name)
            if not self._well_formed(ctx, topic):
                return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
            if ctx.large:
                await PAUSE
        if ids:
            return await self._split(ctx, request, ids, self._image.topic_by_id, _unknown_id)
        refused: Mapping[str, ErrorCode] = {}
        if missing and request.allow_auto_topic_creation and self._config.auto_create_topics_enable:
            refused = await self._create(missing)
        return await self._split(
            ctx, request, names, self._image.topic, lambda name: _unknown_name(name, refused)
        )

    @staticmethod
    def _well_formed(ctx: RequestContext, topic: MetadataRequestTopic) -> bool:
        if ctx.api_version >= _FIRST_VERSION_WITH_IDS:
            return topic.name is not None or topic.topic_id != ZERO_UUID
        return topic.name is not None and topic.topic_id == ZERO_UUID

    async def _split(
        self,
        ctx: RequestContext,
        request: MetadataRequest,
        asked: Iterable[_Key],
        find: Callable[[_Key], TopicImage | None],
        unknown: Callable[[_Key], MetadataResponseTopic],
    ) -> MetadataResponse:
        """The response, with the topics that exist before the others."""
        found, others = [], []
        for key in asked:
            topic = find(key)
            if topic is None:
                others.append(key)
            else:
                found.append(topic)
            if ctx.large:
                await PAUSE
        return await self._response(ctx, request, found, many.results(others, unknown))

    async def _create(self, missing: list[str]) -> dict[str, ErrorCode]:
        """Have topics made; return the codes of those that were refused.

        Like Kafka, which sends one CreateTopics for all topics of the request, make none of them if
        together they would have too many partitions.
        """
        valid = [name for name in missing if invalid_name_reason(name) is None]
        try:
            refused = await self._controller.ensure_topics(valid)
        except KafkaError:
            return {}  # they stay missing: UNKNOWN_TOPIC_OR_PARTITION
        return {name: error.code for name, error in refused.items()}

    async def _response(
        self,
        ctx: RequestContext,
        request: MetadataRequest,
        topics: Sequence[TopicImage],
        errors: Elements[MetadataResponseTopic],
    ) -> MetadataResponse:
        endpoints: dict[int, Endpoint] = {}
        brokers = []
        for broker in self._image.brokers():
            endpoint = endpoint_for(broker, ctx.connection)
            if endpoint is not None:
                endpoints[broker.broker_id] = endpoint
                brokers.append(
                    MetadataResponseBroker(
                        node_id=broker.broker_id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                    )
                )
        operations = authorized_operations.NOT_ASKED
        if request.include_topic_authorized_operations:
            operations = authorized_operations.TOPIC
        response = MetadataResponse(
            brokers=brokers,
            cluster_id=self._image.cluster_id,
            controller_id=self._image.controller_id,
        )
        form = _Form(ctx.api_version, frozenset(endpoints), operations)
        found: list[Encoded] = []
        for start in range(0, len(topics), many.MANY):
            some = topics[start : start + many.MANY]
            found += [topic.encoded.get(form) or await _encode(topic, form) for topic in some]
            await PAUSE
        ctx.large |= sum(map(len, found)) > _LARGE_BYTES
        response.topics = Chained(found, errors)
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = authorized_operations.CLUSTER
        return response

    def error_response(
        self, ctx: RequestContext, request: MetadataRequest, code: ErrorCode
    ) -> MetadataResponse:
        """The code for every topic of the request, and for the response as a whole (v13)."""

        def refused(topic: MetadataRequestTopic) -> MetadataResponseTopic:
            return MetadataResponseTopic(
                error_code=code,
                name=topic.name if ctx.api_version >= _FIRST_VERSION_WITH_IDS else topic.name or "",
                topic_id=topic.topic_id,
                partitions=[],
            )

        topics = many.results(request.topics or (), refused)
        return MetadataResponse(
            brokers=[], cluster_id=self._image.cluster_id, topics=topics, error_code=code
        )


def _unknown_id(topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id, partitions=[]
    )


def _unknown_name(name: str, refused: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    code = refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if invalid_name_reason(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=code, name=name, partitions=[])


async def _encode(topic: TopicImage, form: _Form) -> Encoded:
    """Describe a topic, and keep the bytes with its image for the next request."""
    content = bytearray()
    codec = _codec_of_topic(form.version)
    for _ in codec.build_steps(_describe(topic, form), content.extend):
        await PAUSE
    encoded = Encoded(content)
    if len(topic.encoded) >= _MOST_FORMS:
        del topic.encoded[next(iter(topic.encoded))]
    topic.encoded[form] = encoded
    return encoded


def _describe(topic: TopicImage, form: _Form) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=many.results(
            list(topic.partitions.items()), lambda item: _describe_partition(item, form)
        ),
        topic_authorized_operations=form.operations,
    )


def _describe_partition(item: tuple[int, PartitionImage], form: _Form) -> MetadataResponsePartition:
    index, partition = item
    code, leader = ErrorCode.NONE, partition.leader
    if leader not in form.reachable:
        code = ErrorCode.LEADER_NOT_AVAILABLE
        if leader != NO_LEADER and form.version >= _FIRST_VERSION_WITH_LISTENER_NOT_FOUND:
            code = ErrorCode.LISTENER_NOT_FOUND
        leader = NO_LEADER
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=list(partition.offline_replicas),
    )
