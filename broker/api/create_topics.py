"""CreateTopics (key 19).

Versions: 0-7.

Behaviour (S-META-2, S-CFG-4)
* One result per topic; a name that is asked for twice is an INVALID_REQUEST for that name.
* -1 partitions or replicas mean the broker's defaults (KIP-464; older versions get them too, as in
  Kafka). A manual assignment excludes both numbers.
* `validate_only` checks everything and changes nothing.
* The topic can be written to when the response goes out, so the timeout never comes to bear.
* The rules themselves are in `broker.cluster.topic_plan`.

Version notes
* v5+: the response describes the topic as it was made, with all its configs.
* v7+: and has its id (zero when it was only validated).
"""

from collections import Counter
from typing import Any, Final, Protocol

from broker.api.config_description import BrokerConfigs, topic_entries
from broker.cluster.image import TopicImage
from broker.cluster.topic_plan import NewTopic
from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from protocol.types import ZERO_UUID

VERSIONS: Final = (0, 7)


class TopicCreator(Protocol):
    """What is needed of `broker.cluster.controller.Controller`."""

    async def create_topic(self, wish: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Make the topic. Raises KafkaError."""
        ...


class CreateTopicsHandler:
    """See the module."""

    def __init__(self, controller: TopicCreator, configs: BrokerConfigs) -> None:
        self._controller = controller
        self._configs = configs

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, when all topics are made."""
        named = Counter(topic.name for topic in request.topics)
        results = []
        for topic in request.topics:
            if topic.name not in named:
                continue
            if named.pop(topic.name) > 1:
                message = "Create topics request from client contains multiple entries for the "
                code = ErrorCode.INVALID_REQUEST
                message = shortened(f"{message}following topics: {topic.name}")
                results.append(_refusal(topic, code, message))
                continue
            results.append(await self._one(topic, validate_only=request.validate_only))
        return CreateTopicsResponse(topics=results)

    async def _one(self, topic: Any, *, validate_only: bool) -> Any:
        try:
            made = await self._controller.create_topic(_wish(topic), validate_only=validate_only)
        except KafkaError as error:
            return _refusal(topic, error.code, str(error))
        return CreatableTopicResult(
            name=made.name,
            topic_id=ZERO_UUID if validate_only else made.topic_id,
            error_code=ErrorCode.NONE,
            num_partitions=len(made.partitions),
            replication_factor=len(made.partitions[0].replicas),
            configs=[
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in topic_entries(made.config, self._configs)
            ],
        )

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for every topic."""
        results = [_refusal(topic, code, code.text) for topic in request.topics]
        return CreateTopicsResponse(topics=results)


def _wish(topic: Any) -> NewTopic:
    """What the request says. Raises KafkaError for what no topic can be."""
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


def _refusal(topic: Any, code: ErrorCode, message: str) -> Any:
    return CreatableTopicResult(
        name=topic.name, topic_id=ZERO_UUID, error_code=code, error_message=message, configs=[]
    )
