"""CreateTopics (key 19).

Behaviour (S-META-2, S-CFG-4)
* One result per name; a name that is asked for twice is an INVALID_REQUEST.
* -1 partitions or replicas mean the broker's defaults (KIP-464; older versions get them too, as in
  Kafka). A manual assignment excludes both numbers.
* `validate_only` checks everything and changes nothing.
* The topic can be written to when the response goes out, so the timeout never applies.
* More than 10,000 partitions in all: POLICY_VIOLATION for every topic, before any is planned.
* `broker.cluster.topic_plan` holds the rules.

Version notes
* v5+: the response describes the topic as it was made, with all its configs.
* v7+: the response has the topic's id (zero with `validate_only`).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from typing import Final, Protocol

from broker import many
from broker.api_facts import Api
from broker.cluster.image import TopicImage
from broker.cluster.topic_plan import NewTopic
from broker.request import RequestContext
from broker.resource_configs.description import BrokerConfigs, topic_entries
from broker.security.access import Access, Operation, ResourceType, topics
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.CREATE_TOPICS,
    versions=(0, 7),
    most_elements=50_000,
    # ControllerApis.createTopics
    accesses=(topics(Operation.CREATE, unless=Access(ResourceType.CLUSTER, Operation.CREATE)),),
    make=lambda s: CreateTopicsHandler(s.controller, s.broker_configs),
)

_FIRST_VERSION_WITH_CONFIGS: Final = 5


class TopicCreator(Protocol):
    """The part of `broker.cluster.controller.Controller` that is used here."""

    async def create_topics(
        self, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> dict[str, TopicImage | KafkaError]:
        """Make topics of different names. Raises KafkaError when all of them are refused."""
        ...


class CreateTopicsHandler:
    """Has the controller check and make topics, and describes those that were made."""

    def __init__(self, controller: TopicCreator, configs: BrokerConfigs) -> None:
        self._controller = controller
        self._configs = configs

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
        for name, topic in asked.items():
            if name not in refused:
                try:
                    wishes.append(_wish(topic))
                except KafkaError as error:
                    refused[name] = error
            await PAUSE
        try:
            results = await self._controller.create_topics(
                wishes, validate_only=request.validate_only
            )
        except KafkaError as error:  # the request as a whole is refused
            return _refuse_all(asked, error.code, str(error))

        # Mostly all topics of a request have the same configs.
        described = lru_cache(maxsize=1)(partial(self._described, ctx.api_version))

        def result(name: str) -> CreatableTopicResult:
            found = refused.get(name) or results[name]
            if isinstance(found, KafkaError):
                return _refusal(name, found.code, str(found))
            return CreatableTopicResult(
                name=name,
                topic_id=ZERO_UUID if request.validate_only else found.topic_id,
                error_code=ErrorCode.NONE,
                num_partitions=len(found.partitions),
                replication_factor=len(found.partitions[0].replicas),
                configs=described(tuple(found.config.items())),
            )

        ctx.large |= len(asked) > many.MANY
        return CreateTopicsResponse(topics=many.results(list(asked), result))

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
    """What the request asks for. Raises KafkaError if it assigns a partition twice."""
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


def _refusal(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=ZERO_UUID,
        error_code=code,
        error_message=shortened(message),
        configs=[],
    )
