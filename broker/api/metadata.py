"""Metadata (key 3): brokers, topics, leaders.

Behaviour (S-META-1)
* Topics by name, by id (v12+), or all of them. An unknown name is UNKNOWN_TOPIC_OR_PARTITION, a
  name that no topic can have INVALID_TOPIC_EXCEPTION, an unknown id UNKNOWN_TOPIC_ID.
* A missing topic is created if `auto.create.topics.enable` and the request allow it. In a cluster
  its leaders get ready elsewhere, and the answer is LEADER_NOT_AVAILABLE at first; alone they are
  ready before the answer goes out, so it shows the new topic.
* Brokers have the address for the client's own listener (`broker.cluster.endpoints`); a leader
  without that listener is LISTENER_NOT_FOUND (before v6 LEADER_NOT_AVAILABLE), one that does not
  live LEADER_NOT_AVAILABLE.
* Authorized operations are INT_MIN unless the request asks for them.
* A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED, whether it exists or not;
  if the request names it by its id, the answer does not have its name. A request for all topics
  gets those that the client may describe. A missing topic is created for a client that may create
  topics in the cluster, or this one; others get TOPIC_AUTHORIZATION_FAILED.

One description of a topic serves all clients that ask alike: its bytes are kept with the topic's
image, so a change of the topic drops them. The reply joins the bytes of its topics.

Version notes
* v0: an empty list means all topics. v1+: null means all, an empty list none.
* v0: replicas and ISR are those brokers that the answer names; if others are left out, the
  partition is REPLICA_NOT_AVAILABLE, unless its leader is not available either.
* v4+: the request says whether topics may be created; before, only the broker's configuration does.
* v10, v11: INVALID_REQUEST unless every topic has a name and a zero id.
* v8-v10: authorized operations of the cluster (later in DescribeCluster).
* v13: the response as a whole has an error code.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from broker import many
from broker.api_facts import Api
from broker.cluster.endpoints import Endpoint, endpoint_for
from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from broker.cluster.topic_names import invalid_name_reason
from broker.quotas.quotas import Quotas
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.authorized_operations import (
    NOT_ASKED,
    authorized_operations,
    cluster_operations,
)
from broker.security.permissions import Permissions
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

if TYPE_CHECKING:
    from broker.services import TopicChanger

_FIRST_VERSION_WITH_IDS = 12
_FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6

_MOST_FORMS: Final = 4
"""Clients of a cluster ask in few versions, so few forms of a topic are kept."""
_LARGE_BYTES: Final = 1 << 20
"""A reply of more bytes is put together in turns."""


class _Form(NamedTuple):
    """The values that a topic's description depends on, beside the topic's image."""

    version: int
    reachable: frozenset[int]
    """The brokers that have an address for the client's listener."""
    elsewhere: frozenset[int]
    """The brokers that live, but have no such address: mostly none."""
    operations: int
    """The topic's authorized operations."""


@cache
def _codec_of_topic(version: int) -> Codec[MetadataResponseTopic]:
    return MetadataResponse.element_codec("topics", version)


API: Final = Api(
    key=ApiKey.METADATA,
    versions=(0, 13),
    shows_image=True,
    # KafkaApis.handleTopicMetadataRequest
    asks=(
        Question(ResourceType.TOPIC, Operation.DESCRIBE),
        Question(ResourceType.CLUSTER, Operation.CREATE),
        Question(ResourceType.TOPIC, Operation.CREATE),
        Question(ResourceType.CLUSTER, Operation.DESCRIBE),
    ),
    make=lambda s: MetadataHandler(s.image, s.config, s.controller, s.quotas, allowed=s.allowed),
)


class MetadataHandler:
    """Describes brokers and topics of the metadata image; has missing topics made if asked to."""

    def __init__(
        self,
        image: MetadataImage,
        config: BrokerConfig,
        controller: "TopicChanger",
        quotas: Quotas,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._image = image
        self._config = config
        self._controller = controller
        self._quotas = quotas
        self._allowed = allowed

    async def __call__(self, ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
        """The response, when the topics that must be created first exist."""
        asked = request.topics
        if asked is None or (ctx.api_version == 0 and not asked):
            return await self._response(ctx, request, await self._all(ctx), [])
        names: dict[str, None] = {}
        ids: dict[bytes, None] = {}
        for topic in asked:
            if topic.topic_id != ZERO_UUID:
                ids[topic.topic_id] = None
            elif topic.name is not None:
                names[topic.name] = None
            if not self._well_formed(ctx, topic):
                return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
            if ctx.large:
                await PAUSE
        if ids:
            return await self._by_id(ctx, request, ids)
        return await self._by_name(ctx, request, names)

    async def _all(self, ctx: RequestContext) -> list[TopicImage]:
        """The topics that the client may see."""
        topics = list(self._image.topics())
        allowed = self._allowed
        if allowed is None:
            return topics
        seen = []
        for topic in topics:
            if allowed.quietly(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                seen.append(topic)
            await PAUSE
        return seen

    @staticmethod
    def _well_formed(ctx: RequestContext, topic: MetadataRequestTopic) -> bool:
        if ctx.api_version >= _FIRST_VERSION_WITH_IDS:
            return topic.name is not None or topic.topic_id != ZERO_UUID
        return topic.name is not None and topic.topic_id == ZERO_UUID

    async def _by_id(
        self, ctx: RequestContext, request: MetadataRequest, ids: Iterable[bytes]
    ) -> MetadataResponse:
        """The response; ids are no secret, but the names of topics are."""
        allowed = self._allowed
        found, others = [], []
        for topic_id in ids:
            topic = self._image.topic_by_id(topic_id)
            if topic is None:
                others.append((ErrorCode.UNKNOWN_TOPIC_ID, topic_id))
            elif allowed is None or allowed(
                ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.name
            ):
                found.append(topic)
            else:
                others.append((ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_id))
            if ctx.large:
                await PAUSE
        return await self._response(ctx, request, found, many.results(others, _refused_id))

    async def _by_name(
        self, ctx: RequestContext, request: MetadataRequest, names: Iterable[str]
    ) -> MetadataResponse:
        """The response, with the topics that exist before the others."""
        allowed = self._allowed
        refused: dict[str, ErrorCode] = {}
        missing: list[str] = []
        for name in names:
            if allowed is not None and not allowed(
                ctx, Operation.DESCRIBE, ResourceType.TOPIC, name
            ):
                refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif self._image.topic(name) is None:
                missing.append(name)
            if ctx.large:
                await PAUSE
        if missing and request.allow_auto_topic_creation and self._config.auto_create_topics_enable:
            refused |= await self._forbidden(ctx, missing)
            wanted = [name for name in missing if name not in refused]
            refused |= await self._create(ctx, wanted)
        found, others = [], []
        for name in names:
            topic = None if name in refused else self._image.topic(name)
            if topic is None:
                others.append(name)
            else:
                found.append(topic)
            if ctx.large:
                await PAUSE

        def unknown(name: str) -> MetadataResponseTopic:
            code = refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return self._unknown_name(ctx, request, name, code)

        return await self._response(ctx, request, found, many.results(others, unknown))

    async def _forbidden(self, ctx: RequestContext, missing: Iterable[str]) -> dict[str, ErrorCode]:
        """Which of the topics the client may not create."""
        allowed = self._allowed
        if allowed is None or allowed.quietly(
            ctx, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            return {}
        refused = {}
        for name in missing:
            if not allowed(ctx, Operation.CREATE, ResourceType.TOPIC, name):
                refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if ctx.large:
                await PAUSE
        return refused

    def _unknown_name(
        self, ctx: RequestContext, request: MetadataRequest, name: str, code: ErrorCode
    ) -> MetadataResponseTopic:
        """The answer about a topic that does not exist, or that the client may not describe."""
        described = MetadataResponseTopic(error_code=code, name=name, partitions=[])
        if code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            if invalid_name_reason(name) is not None:
                described.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
            described.topic_authorized_operations = self._operations(ctx, request, name)
        return described

    def _operations(self, ctx: RequestContext, request: MetadataRequest, name: str) -> int:
        if not request.include_topic_authorized_operations:
            return NOT_ASKED
        return authorized_operations(self._allowed, ctx, ResourceType.TOPIC, name)

    async def _create(self, ctx: RequestContext, missing: list[str]) -> dict[str, ErrorCode]:
        """Have topics made; return the codes of those that were refused.

        Like Kafka, which sends one CreateTopics for all topics of the request, make none of them if
        together they would have too many partitions. Those for which the client's quota of changes
        is spent stay missing, too: UNKNOWN_TOPIC_OR_PARTITION.
        """
        valid = [name for name in missing if invalid_name_reason(name) is None]
        charging = self._quotas.charging
        charge = None if charging is None else charging.charge_changes(ctx)
        try:
            refused = await self._controller.ensure_topics(valid, charge)
        except KafkaError:
            return {}
        return {
            name: error.code
            for name, error in refused.items()
            if error.code != ErrorCode.THROTTLING_QUOTA_EXCEEDED
        }

    async def _response(
        self,
        ctx: RequestContext,
        request: MetadataRequest,
        topics: Sequence[TopicImage],
        errors: Elements[MetadataResponseTopic],
    ) -> MetadataResponse:
        endpoints: dict[int, Endpoint] = {}
        elsewhere: list[int] = []
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
            else:
                elsewhere.append(broker.broker_id)
        response = MetadataResponse(
            brokers=brokers,
            cluster_id=self._image.cluster_id,
            controller_id=self._image.controller_id,
        )
        form = _Form(ctx.api_version, frozenset(endpoints), frozenset(elsewhere), NOT_ASKED)
        found = await self._encoded(ctx, request, topics, form)
        ctx.large |= sum(map(len, found)) > _LARGE_BYTES
        response.topics = Chained(found, errors)
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(self._allowed, ctx)
        return response

    async def _encoded(
        self,
        ctx: RequestContext,
        request: MetadataRequest,
        topics: Sequence[TopicImage],
        form: _Form,
    ) -> list[Encoded]:
        """The descriptions of topics, made or kept from the last time."""
        found: list[Encoded] = []
        if request.include_topic_authorized_operations:
            for topic in topics:
                form = form._replace(operations=self._operations(ctx, request, topic.name))
                found.append(topic.encoded.get(form) or await _encode(topic, form))
                await PAUSE
            return found
        for start in range(0, len(topics), many.MANY):
            some = topics[start : start + many.MANY]
            found += [topic.encoded.get(form) or await _encode(topic, form) for topic in some]
            await PAUSE
        return found

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


def _refused_id(refused: tuple[ErrorCode, bytes]) -> MetadataResponseTopic:
    code, topic_id = refused
    return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id, partitions=[])


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
        if leader in form.elsewhere and form.version >= _FIRST_VERSION_WITH_LISTENER_NOT_FOUND:
            code = ErrorCode.LISTENER_NOT_FOUND
        leader = NO_LEADER
    replicas, isr = list(partition.replicas), list(partition.isr)
    if not form.version:
        known = len(replicas) + len(isr)
        replicas = [one for one in replicas if one in form.reachable]
        isr = [one for one in isr if one in form.reachable]
        if code is ErrorCode.NONE and len(replicas) + len(isr) < known:
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=list(partition.offline_replicas),
    )
