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
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from broker.api_facts import Api
from broker.cluster.image import MetadataImage, TopicImage
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

    async def delete_topics(self, names: Sequence[str]) -> dict[str, KafkaError]:
        """Remove different topics; return the errors of those that were refused."""
        ...


class _Asked(NamedTuple):
    name: str | None
    topic_id: bytes


class DeleteTopicsHandler:
    """Has the controller delete topics by name or id."""

    def __init__(self, controller: TopicRemover, image: MetadataImage) -> None:
        self._controller = controller
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        """The response, when all topics are gone."""
        asked = _asked(ctx, request)
        names: list[str | None] = []
        for topic in asked:
            names.append(self._resolved_name(topic))
            await PAUSE
        named = Counter(names)
        found: dict[str, TopicImage | None] = {}
        flaws: list[KafkaError | None] = []
        for topic, name in zip(asked, names, strict=True):
            flaw = _flaw(topic, name)
            if name is not None and named[name] > 1:
                flaw = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            elif name is not None and flaw is None:
                found[name] = self._image.topic(name)
            flaws.append(flaw)
            await PAUSE
        refused = await self._controller.delete_topics(list(found))
        results = []
        for topic, name, flaw in zip(asked, names, flaws, strict=True):
            error, topic_id = flaw, topic.topic_id
            if name is not None and flaw is None:
                error, gone = refused.get(name), found[name]
                if error is None and gone is not None:
                    topic_id = gone.topic_id
            results.append(_result(ctx, name, topic_id, error))
            await PAUSE
        return DeleteTopicsResponse(responses=results)

    def _resolved_name(self, topic: _Asked) -> str | None:
        if topic.name is not None:
            return topic.name
        found = self._image.topic_by_id(topic.topic_id)
        return None if found is None else found.name

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


def _flaw(topic: _Asked, name: str | None) -> KafkaError | None:
    """Return why the topic cannot be looked for; `name` is None if there is none of its id."""
    if topic.name is not None and topic.topic_id != ZERO_UUID:
        return KafkaError(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if name is not None:
        return None
    if topic.topic_id == ZERO_UUID:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def _result(
    ctx: RequestContext, name: str | None, topic_id: bytes, error: KafkaError | None
) -> DeletableTopicResult:
    if error is None:
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=ErrorCode.NONE)
    code = error.code
    if (
        code == ErrorCode.TOPIC_DELETION_DISABLED
        and ctx.api_version < _FIRST_VERSION_WITH_DELETION_DISABLED
    ):
        code = ErrorCode.INVALID_REQUEST
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=str(error)
    )


def _asked(ctx: RequestContext, request: DeleteTopicsRequest) -> list[_Asked]:
    if ctx.api_version >= _FIRST_VERSION_WITH_IDS:
        return [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    return [_Asked(name, ZERO_UUID) for name in request.topic_names]
