"""OffsetFetch (key 9): read the committed offsets of groups.

Behaviour (S-GRP-4)
* A partition without a committed offset, and any partition of a group that does not exist, is
  answered with offset -1, epoch -1, empty metadata and no error.
* Null topics ask for all partitions for which the group has an offset.
* require_stable: a partition with an offset in an open transaction is UNSTABLE_OFFSET_COMMIT.
* Member id and epoch (v9+) concern KIP-848 groups only; classic groups ignore them.

Version notes
* v0 once read from ZooKeeper; here it answers as v1. v0-1 have no top-level error: a refusal of the
  group is repeated for each partition.
* v2+: null topics. v5+: leader epochs. v7+: require_stable. v8+: many groups, each with an error.
* v10: topics by id; UNKNOWN_TOPIC_ID. Null topics then omit topics that no longer exist, and an
  offset that was committed for an older topic of the same name counts as missing.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from broker import many
from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.offsets import NO_OFFSET, CommittedOffset
from broker.request import RequestContext
from broker.security.access import Access, Name, Operation, ResourceType, each_or_every
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.schema.lazy import Elements, Lazy
from protocol.types import NO_LEADER_EPOCH, ZERO_UUID

FIRST_VERSION_WITH_TOP_ERROR: Final = 2
FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10

_Asked = tuple[str | None, bytes, Collection[int]]
"""(topic name, or None if the id is unknown; topic id; partitions)"""

_Find = Callable[[str, int], CommittedOffset | None]

_Topic = OffsetFetchRequestTopic | OffsetFetchRequestTopics
_PartitionT = TypeVar("_PartitionT", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)


def _groups(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    if ctx.api_version < FIRST_VERSION_WITH_GROUPS:
        return (request.group_id,)
    return (group.group_id for group in request.groups)


def _topics(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    """Yield the topics asked for; null asks for every topic with offsets."""
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    named = each_or_every("topics", "topic_id" if by_id else "name")
    for asked in (request,) if ctx.api_version < FIRST_VERSION_WITH_GROUPS else request.groups:
        yield from named(ctx, asked)


API: Final = Api(
    key=ApiKey.OFFSET_FETCH,
    versions=(0, 10),
    ends_with_client=True,
    # KafkaApis.fetchOffsetsForGroup, ….fetchAllOffsetsForGroup
    accesses=(
        Access(ResourceType.GROUP, Operation.DESCRIBE, _groups),
        Access(ResourceType.TOPIC, Operation.DESCRIBE, _topics),
    ),
    make=lambda s: OffsetFetchHandler(s.group_coordinator, s.image),
)


class OffsetFetchHandler:
    """Looks up the committed offsets of groups, each in its shard."""

    def __init__(self, groups: GroupCoordinator, image: MetadataImage) -> None:
        self._groups = groups
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: OffsetFetchRequest
    ) -> OffsetFetchResponse:
        """The response; results of many partitions are made while they are encoded."""
        if ctx.api_version < FIRST_VERSION_WITH_GROUPS:
            return self._one_group(ctx, request)
        by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        stable = request.require_stable
        if not ctx.large and not any(self._is_all_of_many(one) for one in request.groups):
            return OffsetFetchResponse(
                groups=[self._of_many(asked, stable, by_id) for asked in request.groups]
            )
        ctx.large = True
        return OffsetFetchResponse(
            groups=Lazy(request.groups, lambda asked: self._of_many(asked, stable, by_id))
        )

    def _is_all_of_many(self, asked: OffsetFetchRequestGroup | OffsetFetchRequest) -> bool:
        """Whether all partitions of a group are asked for, and they are many."""
        return asked.topics is None and self._groups.has_many_offsets(asked.group_id, many.MANY)

    # ---- v8+

    def _of_many(
        self, asked: OffsetFetchRequestGroup, require_stable: bool, by_id: bool
    ) -> OffsetFetchResponseGroup:
        try:
            find = self._groups.fetch_offset(asked.group_id)
            topics = self._topics_asked(asked.group_id, asked.topics, by_id)
        except KafkaError as error:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)

        def topic(one: _Asked) -> OffsetFetchResponseTopics:
            return OffsetFetchResponseTopics(
                name=one[0] or "",
                topic_id=one[1],
                partitions=self._partitions(
                    OffsetFetchResponsePartitions, asked.group_id, one, require_stable, find
                ),
            )

        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=many.results(topics, topic))

    def _topics_asked(
        self,
        group_id: str,
        topics: Sequence[_Topic] | None,
        by_id: bool,
    ) -> Elements[_Asked]:
        if topics is None:
            return self._all_topics(group_id, by_id)
        if not by_id:
            return Lazy(topics, lambda asked: (asked.name, ZERO_UUID, asked.partition_indexes))

        def resolved(asked: _Topic) -> _Asked:
            assert isinstance(asked, OffsetFetchRequestTopics)  # with ids: v10+
            topic = self._image.topic_by_id(asked.topic_id)
            return None if topic is None else topic.name, asked.topic_id, asked.partition_indexes

        return Lazy(topics, resolved)

    def _all_topics(self, group_id: str, by_id: bool) -> list[_Asked]:
        named: list[_Asked] = []
        for name, partitions in self._groups.fetch_all_offsets(group_id).items():
            topic = self._image.topic(name) if by_id else None
            if by_id and topic is None:
                continue
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            named.append((name, topic_id, partitions.keys()))
        return named

    # ---- v0-7

    def _one_group(self, ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
        group_id = request.group_id
        try:
            find = self._groups.fetch_offset(group_id)
            topics = self._topics_asked(group_id, request.topics, by_id=False)
        except KafkaError as error:
            return _refused(ctx.api_version, request, error.code)

        def topic(asked: _Asked) -> OffsetFetchResponseTopic:
            return OffsetFetchResponseTopic(
                name=asked[0] or "",
                partitions=self._partitions(
                    OffsetFetchResponsePartition, group_id, asked, request.require_stable, find
                ),
            )

        if self._is_all_of_many(request):
            ctx.large = True
        return OffsetFetchResponse(topics=many.results(topics, topic))

    # ---- all

    def _partitions(
        self,
        group: type[_PartitionT],
        group_id: str,
        asked: _Asked,
        require_stable: bool,
        find: _Find,
    ) -> Elements[_PartitionT]:
        name, topic_id, numbers = asked

        def partition(number: int) -> _PartitionT:
            if name is None:
                return _partition(group, number, None, ErrorCode.UNKNOWN_TOPIC_ID)
            if require_stable and self._groups.is_unstable(group_id, name, number):
                return _partition(group, number, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            return _partition(group, number, _same_topic(find(name, number), topic_id))

        return many.results(list(numbers), partition)

    def error_response(
        self, ctx: RequestContext, request: OffsetFetchRequest, code: ErrorCode
    ) -> OffsetFetchResponse:
        """`code` for every group."""
        if ctx.api_version < FIRST_VERSION_WITH_GROUPS:
            return _refused(ctx.api_version, request, code)
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
                for asked in request.groups
            ]
        )


def _same_topic(found: CommittedOffset | None, topic_id: bytes) -> CommittedOffset | None:
    """`found`, or None if both topic ids are known and differ: the topic was recreated since."""
    if found is None or topic_id == ZERO_UUID or found.topic_id in (None, topic_id):
        return found
    return None


def _partition(
    group: type[_PartitionT],
    number: int,
    found: CommittedOffset | None,
    code: ErrorCode = ErrorCode.NONE,
) -> _PartitionT:
    result = group()
    result.partition_index = number
    result.error_code = code
    if found is None:
        result.committed_offset = NO_OFFSET
        result.committed_leader_epoch = NO_LEADER_EPOCH
        result.metadata = ""
    else:
        result.committed_offset = found.offset
        result.committed_leader_epoch = found.leader_epoch
        result.metadata = found.metadata
    return result


def _refused(version: int, request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    if version >= FIRST_VERSION_WITH_TOP_ERROR:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    _partition(OffsetFetchResponsePartition, number, None, code)
                    for number in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )
