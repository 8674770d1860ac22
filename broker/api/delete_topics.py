"""DeleteTopics (key 20).

Behaviour (S-META-2, S-RET-8)
* One result per topic. The topic is gone for clients when the response goes out; its files are
  deleted in the background, so the timeout never applies.
* A topic that is named twice is an INVALID_REQUEST.
* With `delete.topic.enable=false` TOPIC_DELETION_DISABLED (v0-v2: INVALID_REQUEST).

Version notes
* v5+: error messages.
* v6+: a topic is named by name or by id, and answered with both; UNKNOWN_TOPIC_ID for an unknown
  id, INVALID_REQUEST for a topic with both or none.
"""

from collections import Counter
from typing import Final, NamedTuple, Protocol

from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.request import RequestContext
from broker.security.access import Access, Operation, ResourceType, by_version, each
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DELETE_TOPICS,
    versions=(0, 6),
    most_elements=50_000,
    # ControllerApis.deleteTopics
    accesses=(
        Access(
            ResourceType.TOPIC,
            Operation.DELETE,
            by_version(6, each("topic_names"), each("topics", "name", "topic_id")),
            unless=Access(ResourceType.CLUSTER, Operation.DELETE),
        ),
    ),
    make=lambda s: DeleteTopicsHandler(s.controller, s.image),
)

_FIRST_VERSION_WITH_IDS = 6
_FIRST_VERSION_WITH_DELETION_DISABLED = 3


class TopicRemover(Protocol):
    """The part of `broker.cluster.controller.Controller` that is used here."""

    async def delete_topic(self, name: str) -> None:
        """Remove the topic. Raises KafkaError."""
        ...


class _Asked(NamedTuple):
    name: str | None
    topic_id: bytes


class DeleteTopicsHandler:
    """Has the controller delete topics by name or id, one after the other."""

    def __init__(self, controller: TopicRemover, image: MetadataImage) -> None:
        self._controller = controller
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        """The response, when all topics are gone."""
        asked = _asked(ctx, request)
        named: Counter[str | None] = Counter()
        for topic in asked:
            named[self._resolved_name(topic)] += 1
            await PAUSE
        results = []
        for topic in asked:
            code, message = ErrorCode.NONE, None
            name, topic_id = self._resolved_name(topic), topic.topic_id
            found = None if name is None else self._image.topic(name)
            try:
                if named[name] > 1 and name is not None:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                await self._delete(topic, name)
                if found is not None:
                    topic_id = found.topic_id
            except KafkaError as error:
                code, message = error.code, str(error)
                if (
                    code == ErrorCode.TOPIC_DELETION_DISABLED
                    and ctx.api_version < _FIRST_VERSION_WITH_DELETION_DISABLED
                ):
                    code = ErrorCode.INVALID_REQUEST
            results.append(
                DeletableTopicResult(
                    name=name, topic_id=topic_id, error_code=code, error_message=message
                )
            )
            await PAUSE
        return DeleteTopicsResponse(responses=results)

    def _resolved_name(self, topic: _Asked) -> str | None:
        if topic.name is not None:
            return topic.name
        found = self._image.topic_by_id(topic.topic_id)
        return None if found is None else found.name

    async def _delete(self, topic: _Asked, name: str | None) -> None:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
            )
        if name is None:
            if topic.topic_id == ZERO_UUID:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified."
                )
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        await self._controller.delete_topic(name)

    def error_response(
        self, ctx: RequestContext, request: DeleteTopicsRequest, code: ErrorCode
    ) -> DeleteTopicsResponse:
        """The code for every topic."""
        results = [
            DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=code.text
            )
            for topic in _asked(ctx, request)
        ]
        return DeleteTopicsResponse(responses=results)


def _asked(ctx: RequestContext, request: DeleteTopicsRequest) -> list[_Asked]:
    if ctx.api_version >= _FIRST_VERSION_WITH_IDS:
        return [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    return [_Asked(name, ZERO_UUID) for name in request.topic_names]
