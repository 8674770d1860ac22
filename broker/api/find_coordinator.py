"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

Behaviour (S-GRP-5)
* A group's coordinator is the leader of its partition of `__consumer_offsets`, a transactional id's
  that of its partition of `__transaction_state`. If the topic does not exist, it is made, and the
  answer waits for that. COORDINATOR_NOT_AVAILABLE if it cannot be made or the partition has no
  leader, and in a cluster while the controller makes it.
* GROUP_AUTHORIZATION_FAILED or TRANSACTIONAL_ID_AUTHORIZATION_FAILED for each key that the client
  may not describe. If there is no other, no topic is made.
* Share groups and unknown key types: INVALID_REQUEST.

Version notes
* v0: groups only. v1+: key types. v4+: many keys, each with its own result (KIP-699).
* v6: adds share coordinators, which this broker does not have.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from broker import many
from broker.api_facts import Api
from broker.cluster.endpoints import endpoint_for
from broker.cluster.image import MetadataImage, TopicImage
from broker.request import ConnectionInfo, RequestContext
from broker.security.access import DENIED, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from protocol.schema.lazy import Elements
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.coordinator.group.coordinator import GroupCoordinator
    from broker.coordinator.transaction.coordinator import TransactionCoordinator
    from broker.services import TopicChanger

FIRST_VERSION_WITH_KEYS: Final = 4
NO_NODE: Final = -1


class KeyType(IntEnum):
    """The kind of thing that a key names."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def _keys(ctx: RequestContext, request: FindCoordinatorRequest) -> list[str]:
    if ctx.api_version >= FIRST_VERSION_WITH_KEYS:
        return list(request.coordinator_keys)
    return [request.key]


API: Final = Api(
    key=ApiKey.FIND_COORDINATOR,
    versions=(0, 6),
    # KafkaApis.getCoordinator
    asks=(
        Question(ResourceType.GROUP, Operation.DESCRIBE),
        Question(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE),
    ),
    make=lambda s: FindCoordinatorHandler(
        s.group_coordinator,
        s.transaction_coordinator,
        s.image,
        s.controller,
        allowed=s.allowed,
    ),
)


class _Kind(NamedTuple):
    """A kind of coordinator: its topic, and which partition a key belongs to."""

    resource: ResourceType
    topic: str
    partition_for: Callable[[str], int]


class FindCoordinatorHandler:
    """Finds the leader of the partition that a key belongs to; makes the topic if it is missing."""

    def __init__(
        self,
        groups: "GroupCoordinator",
        transactions: "TransactionCoordinator",
        image: MetadataImage,
        controller: "TopicChanger",
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._image = image
        self._controller = controller
        self._kinds: dict[int, _Kind] = {
            KeyType.GROUP: _Kind(ResourceType.GROUP, OFFSETS_TOPIC, groups.partition_for),
            KeyType.TRANSACTION: _Kind(
                ResourceType.TRANSACTIONAL_ID, TRANSACTION_TOPIC, transactions.partition_for
            ),
        }

    async def __call__(
        self, ctx: RequestContext, request: FindCoordinatorRequest
    ) -> FindCoordinatorResponse:
        """The response, when the topic exists."""
        kind = self._kinds.get(request.key_type)
        if kind is None:
            return self.error_response(ctx, request, ErrorCode.INVALID_REQUEST)
        keys = _keys(ctx, request)
        may = await self._judged(ctx, keys, kind)
        topic = self._image.topic(kind.topic)
        if topic is None and (may is None or any(may.values())):
            with suppress(KafkaError):
                topic = await self._controller.ensure_topic(kind.topic)

        def found(key: str) -> Coordinator:
            if may is not None and not may[key]:
                return _unfound(key, DENIED[kind.resource])
            if topic is None:
                return _unfound(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return self._find(key, topic, kind.partition_for(key), ctx.connection)

        ctx.large |= len(keys) > many.MANY
        return _build(ctx, many.results(keys, found))

    async def _judged(
        self, ctx: RequestContext, keys: Iterable[str], kind: "_Kind"
    ) -> dict[str, bool] | None:
        """Whether the client may describe each key; None without an authorizer."""
        allowed = self._allowed
        if allowed is None:
            return None
        may: dict[str, bool] = {}
        for key in keys:
            if key not in may:
                may[key] = allowed(ctx, Operation.DESCRIBE, kind.resource, key)
            await PAUSE
        return may

    def _find(
        self, key: str, topic: TopicImage, index: int, connection: ConnectionInfo
    ) -> Coordinator:
        partition = topic.partitions.get(index)
        leader = None if partition is None else self._image.broker(partition.leader)
        endpoint = None if leader is None else endpoint_for(leader, connection)
        if leader is None or endpoint is None:
            return _unfound(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(
            key=key, node_id=leader.broker_id, host=endpoint.host, port=endpoint.port
        )

    def error_response(
        self, ctx: RequestContext, request: FindCoordinatorRequest, code: ErrorCode
    ) -> FindCoordinatorResponse:
        """`code` for every key."""
        return _build(ctx, many.results(_keys(ctx, request), lambda key: _unfound(key, code)))


def _unfound(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=code, error_message=code.text
    )


def _build(ctx: RequestContext, found: Elements[Coordinator]) -> FindCoordinatorResponse:
    if ctx.api_version >= FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(coordinators=found)
    one = next(iter(found))
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
