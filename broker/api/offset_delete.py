"""OffsetDelete (key 47): delete a group's offsets of topics that it no longer reads.

Behaviour (S-GRP-6, KIP-496)
* GROUP_ID_NOT_FOUND if the group does not exist; NON_EMPTY_GROUP if it has members whose
  subscriptions the broker cannot read, because they are not consumers.
* The whole request is GROUP_AUTHORIZATION_FAILED if the client may not delete the group.
* Per partition: TOPIC_AUTHORIZATION_FAILED if the client may not read the topic,
  UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC; NONE also if there was no
  offset to delete.
* The answer goes out when the tombstones are durable.
"""

from collections.abc import Collection
from typing import Final

from broker.api_facts import Api, CodeAlone
from broker.cluster.image import MetadataImage
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.request import RequestContext
from broker.security.access import Access, Operation, Question, ResourceType, field
from broker.security.permissions import Permissions
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.OFFSET_DELETE,
    versions=(0, 0),
    most_elements=20_000,
    # KafkaApis.handleOffsetDeleteRequest
    accesses=(Access(ResourceType.GROUP, Operation.DELETE, field("group_id")),),
    asks=(Question(ResourceType.TOPIC, Operation.READ),),
    make=lambda s: OffsetDeleteHandler(s.group_coordinator, s.image, allowed=s.allowed),
)

TOMBSTONES_PER_BATCH: Final = 256
"""Offsets that a large request deletes at a time: two milliseconds of work."""


class OffsetDeleteHandler(CodeAlone):
    """Has the group coordinator delete offsets of topics that no member reads."""

    response = OffsetDeleteResponse

    def __init__(
        self,
        groups: GroupCoordinator,
        image: MetadataImage,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._groups = groups
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse:
        """The response, when the tombstones are durable.

        Those of a large request are written as several batches, one after the other.
        """
        denied = await self._denied(ctx, request)
        wanted = list(
            dict.fromkeys(
                (topic.name, one.partition_index)
                for topic in request.topics
                if topic.name not in denied
                for one in topic.partitions
                if self._exists(topic.name, one.partition_index)
            )
        )
        size = TOMBSTONES_PER_BATCH if ctx.large else len(wanted)
        results: dict[tuple[str, int], ErrorCode] = {}
        ctx.released = True
        # Once even if nothing is wanted: the group may be missing.
        for start in range(0, len(wanted) or 1, size or 1):
            some = wanted[start : start + size]
            deletion = begin(self._groups.delete_offsets(request.group_id, some))
            # The batches of a large request are all written, even if the client leaves.
            code, codes = await (deletion if ctx.large else deletion.parked())
            if code is not ErrorCode.NONE:
                raise KafkaError(code)
            results |= codes
            await PAUSE
        return _response(request, results, denied)

    async def _denied(self, ctx: RequestContext, request: OffsetDeleteRequest) -> Collection[str]:
        """The topics that the client may not read."""
        allowed = self._allowed
        denied: set[str] = set()
        if allowed is None:
            return denied
        for topic in request.topics:
            if not allowed(ctx, Operation.READ, ResourceType.TOPIC, topic.name):
                denied.add(topic.name)
            await PAUSE
        return denied

    def _exists(self, name: str, partition: int) -> bool:
        topic = self._image.topic(name)
        return topic is not None and partition in topic.partitions


def _response(
    request: OffsetDeleteRequest,
    results: dict[tuple[str, int], ErrorCode],
    denied: Collection[str],
) -> OffsetDeleteResponse:
    def code(topic: str, partition: int) -> ErrorCode:
        if topic in denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return results.get((topic, partition), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=one.partition_index,
                        error_code=code(topic.name, one.partition_index),
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
