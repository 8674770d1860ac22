"""DeleteTopics (key 20).

Behaviour (S-META-2, S-RET-8)
* One result per topic. The topic is gone for clients when the response goes out; its files are
  deleted in the background. Only in a cluster the timeout may come first (REQUEST_TIMED_OUT; the
  topic is being deleted all the same).
* A topic that is named twice is an INVALID_REQUEST.
* TOPIC_AUTHORIZATION_FAILED for a client that may delete neither topics of the cluster nor this
  one, and for a name that the client may not describe, whether it exists or not. If the request
  names a topic by its id, the answer has the name for a client that may describe or delete it.
* Each partition counts for the client's quota of changes (S-QTA-4).
* With `delete.topic.enable=false` TOPIC_DELETION_DISABLED (v0-v2: INVALID_REQUEST).

Version notes
* v5+: error messages; THROTTLING_QUOTA_EXCEEDED while the quota of changes is spent. Older clients
  are throttled, and served.
* v6+: a topic is named by name or by id, and answered with both; UNKNOWN_TOPIC_ID for an unknown
  id, INVALID_REQUEST for a topic with both or none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api_facts import Api
from broker.cluster.image import MetadataImage, TopicImage
from broker.quotas.changes import charged_changes, message_of
from broker.quotas.quotas import Quotas
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.services import TopicChanger

API: Final = Api(
    key=ApiKey.DELETE_TOPICS,
    versions=(0, 6),
    most_elements=50_000,
    controller_only=True,
    # ControllerApis.deleteTopics
    asks=(
        Question(ResourceType.CLUSTER, Operation.DELETE),
        Question(ResourceType.TOPIC, Operation.DESCRIBE),
        Question(ResourceType.TOPIC, Operation.DELETE),
    ),
    make=lambda s: DeleteTopicsHandler(
        s.controller,
        s.image,
        s.quotas,
        enabled=s.config.delete_topic_enable,
        allowed=s.allowed,
    ),
)

FIRST_STRICT_VERSION: Final = 5

_FIRST_VERSION_WITH_IDS = 6
_FIRST_VERSION_WITH_DELETION_DISABLED = 3


class _Asked(NamedTuple):
    name: str | None
    topic_id: bytes


@dataclass(slots=True)
class _Entry:
    """A topic of the request, and what becomes of it."""

    topic_id: bytes
    name: str | None
    """The name that the reply has."""
    error: KafkaError | None = None


class DeleteTopicsHandler:
    """Has the controller delete topics by name or id."""

    def __init__(
        self,
        controller: "TopicChanger",
        image: MetadataImage,
        quotas: Quotas,
        *,
        enabled: bool = True,
        allowed: Permissions | None = None,
    ) -> None:
        """`enabled`: `delete.topic.enable`."""
        self._controller = controller
        self._image = image
        self._quotas = quotas
        self._enabled = enabled
        self._allowed = allowed

    async def __call__(
        self, ctx: RequestContext, request: DeleteTopicsRequest
    ) -> DeleteTopicsResponse:
        """The response, when all topics are gone."""
        if not self._enabled:
            return self.error_response(ctx, request, ErrorCode.TOPIC_DELETION_DISABLED)
        entries = await self._judged(ctx, _asked(ctx, request))
        found: dict[str, TopicImage | None] = {}
        for entry in entries:
            if entry.error is None and entry.name is not None:
                found[entry.name] = self._image.topic(entry.name)
            await PAUSE
        with charged_changes(self._quotas, ctx, strict_since=FIRST_STRICT_VERSION) as charge:
            refused = await self._controller.delete_topics(
                list(found), charge, timeout_ms=request.timeout_ms
            )
        results = []
        for entry in entries:
            if entry.error is None and entry.name is not None:
                entry.error, gone = refused.get(entry.name), found[entry.name]
                if entry.error is None and gone is not None:
                    entry.topic_id = gone.topic_id
            results.append(_result(ctx, entry))
            await PAUSE
        return DeleteTopicsResponse(responses=results)

    async def _judged(self, ctx: RequestContext, asked: Sequence[_Asked]) -> list[_Entry]:
        """The topics of the request; those that are left without an error are to be deleted."""
        named: Counter[str | bytes] = Counter()
        for topic in asked:
            if topic.name is None:
                named[topic.topic_id] += 1
            elif topic.topic_id == ZERO_UUID:
                named[topic.name] += 1
            await PAUSE
        allowed = self._allowed
        if allowed is not None and allowed.quietly(
            ctx, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            allowed = None
        entries = []
        meant: Counter[str] = Counter()
        for topic in asked:
            entry = _Entry(topic.topic_id, topic.name, _flaw(topic, named))
            if entry.error is None:
                self._find(ctx, entry, allowed)
            if entry.error is None and entry.name is not None:
                meant[entry.name] += 1
            entries.append(entry)
            await PAUSE
        for topic, entry in zip(asked, entries, strict=True):
            if entry.error is None and entry.name is not None:
                known = self._image.topic(entry.name)
                by_its_id = topic.name is not None and known is not None and known.topic_id in named
                if meant[entry.name] > 1 or by_its_id:
                    entry.error = KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        "The provided topic name maps to an ID that was already supplied.",
                    )
            await PAUSE
        return entries

    def _find(self, ctx: RequestContext, entry: _Entry, allowed: Permissions | None) -> None:
        """Complete an entry's name, or say why its topic is not deleted."""
        name = entry.name
        if name is None:
            topic = self._image.topic_by_id(entry.topic_id)
            if topic is None:
                entry.error = KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
                )
                return
            name = topic.name
        may_describe = may_delete = True
        if allowed is not None:
            may_describe = allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name)
            may_delete = allowed(ctx, Operation.DELETE, ResourceType.TOPIC, name)
        if entry.name is None:
            entry.name = name if may_describe or may_delete else None
            denied = not may_delete
        else:
            exists = self._image.topic(name) is not None
            denied = not may_describe or (exists and not may_delete)
        if denied:
            entry.error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def error_response(
        self, ctx: RequestContext, request: DeleteTopicsRequest, code: ErrorCode
    ) -> DeleteTopicsResponse:
        """The code for every topic."""
        results = [
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=_code(ctx, code),
                error_message=code.text,
            )
            for topic in _asked(ctx, request)
        ]
        return DeleteTopicsResponse(responses=results)


def _flaw(topic: _Asked, named: Mapping[str | bytes, int]) -> KafkaError | None:
    """Return why the topic cannot be looked for; `named` counts names and ids."""
    reason = None
    if topic.name is None and topic.topic_id == ZERO_UUID:
        reason = "Neither topic name nor id were specified."
    elif topic.name is not None and topic.topic_id != ZERO_UUID:
        reason = "You may not specify both topic name and topic id."
    elif topic.name is not None and named[topic.name] > 1:
        reason = "Duplicate topic name."
    elif topic.name is None and named[topic.topic_id] > 1:
        reason = "Duplicate topic id."
    return None if reason is None else KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _result(ctx: RequestContext, entry: _Entry) -> DeletableTopicResult:
    result = DeletableTopicResult(
        name=entry.name, topic_id=entry.topic_id, error_code=ErrorCode.NONE
    )
    if entry.error is not None:
        result.error_code = _code(ctx, entry.error.code)
        result.error_message = message_of(entry.error)
    return result


def _code(ctx: RequestContext, code: ErrorCode) -> ErrorCode:
    if (
        code is ErrorCode.TOPIC_DELETION_DISABLED
        and ctx.api_version < _FIRST_VERSION_WITH_DELETION_DISABLED
    ):
        return ErrorCode.INVALID_REQUEST
    return code


def _asked(ctx: RequestContext, request: DeleteTopicsRequest) -> list[_Asked]:
    if ctx.api_version >= _FIRST_VERSION_WITH_IDS:
        return [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    return [_Asked(name, ZERO_UUID) for name in request.topic_names]
