"""CreateTopics (key 19).

Behaviour (S-META-2, S-CFG-4)
* One result per name; a name that comes twice is an INVALID_REQUEST.
* TOPIC_AUTHORIZATION_FAILED for a client that may create topics neither in the cluster nor under
  this name. A client that may not describe the topic's configs gets neither these nor the numbers
  of partitions and replicas.
* -1 partitions or replicas mean the broker's defaults (KIP-464; older versions get them too, as in
  Kafka). A manual assignment excludes both numbers.
* `validate_only` checks everything and changes nothing.
* The topic can be written to when the response goes out. Only in a cluster the timeout may come
  first (REQUEST_TIMED_OUT; the topic is being made all the same), because the request waits for
  leaders.
* More than 10,000 partitions in all: POLICY_VIOLATION for every topic, before any is planned.
* `broker.cluster.topic_plan` holds the rules.
* Each partition counts for the client's quota of changes (S-QTA-4), also with `validate_only`.

Version notes
* v5+: the response describes the topic as it was made, with all its configs.
* v6+: THROTTLING_QUOTA_EXCEEDED while that is spent; older clients are throttled, and served.
* v7+: the response has the topic's id (zero with `validate_only`).
"""

from collections.abc import Collection, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from broker import many
from broker.api_facts import Api
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.topic_plan import NewTopic
from broker.quotas.changes import charged_changes, message_of
from broker.quotas.quotas import Quotas
from broker.request import RequestContext
from broker.resource_configs.description import topic_entries
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.schema.lazy import Lazy
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.services import TopicChanger

API: Final = Api(
    key=ApiKey.CREATE_TOPICS,
    versions=(0, 7),
    most_elements=50_000,
    controller_only=True,
    # ControllerApis.createTopics
    asks=(
        Question(ResourceType.CLUSTER, Operation.CREATE),
        Question(ResourceType.TOPIC, Operation.CREATE),
        Question(ResourceType.TOPIC, Operation.DESCRIBE_CONFIGS),
    ),
    make=lambda s: CreateTopicsHandler(s.controller, s.broker_configs, s.quotas, allowed=s.allowed),
)

FIRST_STRICT_VERSION: Final = 6
_FIRST_VERSION_WITH_CONFIGS: Final = 5

FEW: Final = 16
"""Topics that are described in one go: each has some thirty configs."""


class CreateTopicsHandler:
    """Has the controller check and make topics, and describes those that were made."""

    def __init__(
        self,
        controller: "TopicChanger",
        configs: DynamicBrokerConfig,
        quotas: Quotas,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._controller = controller
        self._configs = configs
        self._quotas = quotas

    async def __call__(
        self, ctx: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        """The response, when all topics are made."""
        asked: dict[str, CreatableTopic] = {}
        refused: dict[str, KafkaError] = {}
        for topic in request.topics:
            name = topic.name
            if asked.setdefault(name, topic) is not topic and name not in refused:
                message = "Create topics request from client contains multiple entries for the "
                message += f"following topics: {name}"
                refused[name] = KafkaError(ErrorCode.INVALID_REQUEST, message)
            await PAUSE
        wishes = []
        hidden = await self._ask(ctx, asked, refused)
        for name, topic in asked.items():
            if name not in refused:
                try:
                    wishes.append(_wish(topic))
                except KafkaError as error:
                    refused[name] = error.with_traceback(None)
            await PAUSE
        try:
            with charged_changes(self._quotas, ctx, strict_since=FIRST_STRICT_VERSION) as charge:
                results = await self._controller.create_topics(
                    wishes,
                    validate_only=request.validate_only,
                    charge=charge,
                    timeout_ms=request.timeout_ms,
                )
        except KafkaError as error:  # the request as a whole is refused
            return _refuse_all(asked, error.code, str(error))

        # Mostly all topics of a request have the same configs.
        described = lru_cache(maxsize=1)(partial(self._described, ctx.api_version))

        def result(name: str) -> CreatableTopicResult:
            found = refused.get(name) or results[name]
            if isinstance(found, KafkaError):
                return _refusal(name, found.code, message_of(found))
            topic_id = ZERO_UUID if request.validate_only else found.topic_id
            if name in hidden:
                return CreatableTopicResult(
                    name=name,
                    topic_id=topic_id,
                    error_code=ErrorCode.NONE,
                    topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    configs=[],
                )
            return CreatableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=ErrorCode.NONE,
                num_partitions=len(found.partitions),
                replication_factor=len(found.partitions[0].replicas),
                configs=described(tuple(found.config.items())),
            )

        if not ctx.large and len(asked) <= FEW:
            return CreateTopicsResponse(topics=list(map(result, asked)))
        ctx.large = True
        return CreateTopicsResponse(topics=Lazy(list(asked), result))

    async def _ask(
        self, ctx: RequestContext, names: Iterable[str], refused: dict[str, KafkaError]
    ) -> Collection[str]:
        """Refuse what the client may not create; return topics whose configs it may not see."""
        allowed = self._allowed
        hidden: set[str] = set()
        if allowed is None:
            return hidden
        any_name = allowed.quietly(ctx, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        for name in names:
            if name not in refused:
                if not any_name and not allowed(ctx, Operation.CREATE, ResourceType.TOPIC, name):
                    refused[name] = KafkaError(
                        ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."
                    )
                if not allowed.quietly(ctx, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
                    hidden.add(name)
            await PAUSE
        return hidden

    def _described(
        self, version: int, own: tuple[tuple[str, str], ...]
    ) -> list[CreatableTopicConfigs]:
        """Describe all configs of a topic that sets `own` itself."""
        told = version >= _FIRST_VERSION_WITH_CONFIGS
        return [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in (topic_entries(dict(own), self._configs) if told else ())
        ]

    def error_response(
        self, ctx: RequestContext, request: CreateTopicsRequest, code: ErrorCode
    ) -> CreateTopicsResponse:
        """The code for every topic."""
        return _refuse_all({topic.name: topic for topic in request.topics}, code, code.text)


def _refuse_all(asked: Iterable[str], code: ErrorCode, message: str) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=many.results(list(asked), lambda name: _refusal(name, code, message))
    )


def _wish(topic: CreatableTopic) -> NewTopic:
    """The topic that the request describes. Raises KafkaError if it assigns a partition twice."""
    assignment = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if len(assignment) != len(topic.assignments):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once."
        )
    config = {entry.name: entry.value for entry in topic.configs}
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment=assignment,
        config=config,
    )


def _refusal(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=ZERO_UUID,
        error_code=code,
        error_message=None if message is None else shortened(message),
        configs=[],
    )
