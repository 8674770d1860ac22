"""OffsetFetch (key 9): read the committed offsets of groups.

Behaviour (S-GRP-4)
* A partition without a committed offset, and any partition of a group that does not exist, is
  answered with offset -1, epoch -1, empty metadata and no error.
* Null topics ask for all partitions for which the group has an offset.
* GROUP_AUTHORIZATION_FAILED for a group that the client may not describe; per partition
  TOPIC_AUTHORIZATION_FAILED for a topic that it may not describe. Null topics leave those out.
* require_stable: a partition with an offset in an open transaction is UNSTABLE_OFFSET_COMMIT.
* Member id and epoch (v9+) concern KIP-848 groups only; classic groups ignore them.

Version notes
* v0 once read from ZooKeeper; here it answers as v1. v0-1 have no top-level error: a refusal of the
  group is repeated for each partition.
* v2+: null topics. v5+: leader epochs. v7+: require_stable. v8+: many groups, each with an error.
* v10: topics by id; UNKNOWN_TOPIC_ID. Null topics then omit topics that no longer exist, and an
  offset that was committed for an older topic of the same name counts as missing.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from broker import many
from broker.api_facts import Api
from broker.cluster.image import MetadataImage
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.offsets import NO_OFFSET, CommittedOffset
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
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

_Asked = tuple[str | None, bytes, Collection[int], ErrorCode]
"""(topic name, or None if the id is unknown; topic id; partitions; code that refuses them all)"""

_Find = Callable[[str, int], CommittedOffset | None]

_Topic = OffsetFetchRequestTopic | OffsetFetchRequestTopics
_PartitionT = TypeVar("_PartitionT", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)


API: Final = Api(
    key=ApiKey.OFFSET_FETCH,
    versions=(0, 10),
    ends_with_client=True,
    # KafkaApis.fetchOffsetsForGroup, ….fetchAllOffsetsForGroup
    asks=(
        Question(ResourceType.GROUP, Operation.DESCRIBE),
        Question(ResourceType.TOPIC, Operation.DESCRIBE),
    ),
    make=lambda s: OffsetFetchHandler(s.group_coordinator, s.image, allowed=s.allowed),
)


class OffsetFetchHandler:
    """Looks up the committed offsets of groups, each in its shard."""

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

    def __call__(self, ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """The response; results of many partitions are made while they are encoded."""
        if ctx.api_version < FIRST_VERSION_WITH_GROUPS:
            return self._one_group(ctx, request)
        by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        stable = request.require_stable
        if not ctx.large and not self._are_many(request.groups):
            return OffsetFetchResponse(
                groups=[self._of_many(ctx, asked, stable, by_id) for asked in request.groups]
            )
        ctx.large = True
        return OffsetFetchResponse(
            groups=Lazy(request.groups, lambda asked: self._of_many(ctx, asked, stable, by_id))
        )

    def _are_many(self, groups: Sequence[OffsetFetchRequestGroup | OffsetFetchRequest]) -> bool:
        """Whether the request wants all partitions of groups that have many together.

        A small request may name a group a thousand times.
        """
        left = many.MANY
        for asked in groups:
            if asked.topics is None:
                left -= self._groups.count_offsets(asked.group_id, most=left + 1)
                if left < 0:
                    return True
        return False

    # ---- v8+

    def _of_many(
        self, ctx: RequestContext, asked: OffsetFetchRequestGroup, require_stable: bool, by_id: bool
    ) -> OffsetFetchResponseGroup:
        try:
            self._check_group(ctx, asked.group_id)
            find = self._groups.fetch_offset(asked.group_id)
            unstable = self._unstable(asked.group_id, require_stable)
            topics = self._topics_asked(ctx, asked.group_id, asked.topics, by_id)
        except KafkaError as error:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)

        def topic(one: _Asked) -> OffsetFetchResponseTopics:
            return OffsetFetchResponseTopics(
                name=one[0] or "",
                topic_id=one[1],
                partitions=self._partitions(OffsetFetchResponsePartitions, one, unstable, find),
            )

        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=many.results(topics, topic))

    def _topics_asked(
        self,
        ctx: RequestContext,
        group_id: str,
        topics: Sequence[_Topic] | None,
        by_id: bool,
    ) -> Elements[_Asked]:
        if topics is None:
            return self._all_topics(ctx, group_id, by_id)

        def named(asked: _Topic) -> _Asked:
            code = self._refusal(ctx, asked.name)
            return asked.name, ZERO_UUID, asked.partition_indexes, code

        def resolved(asked: _Topic) -> _Asked:
            assert isinstance(asked, OffsetFetchRequestTopics)  # with ids: v10+
            topic = self._image.topic_by_id(asked.topic_id)
            if topic is None:
                code, name = ErrorCode.UNKNOWN_TOPIC_ID, None
            else:
                code, name = self._refusal(ctx, topic.name), topic.name
            return name, asked.topic_id, asked.partition_indexes, code

        return Lazy(topics, resolved if by_id else named)

    def _all_topics(self, ctx: RequestContext, group_id: str, by_id: bool) -> list[_Asked]:
        named: list[_Asked] = []
        for name, partitions in self._groups.fetch_all_offsets(group_id).items():
            if self._refusal(ctx, name) is not ErrorCode.NONE:
                continue
            topic = self._image.topic(name) if by_id else None
            if by_id and topic is None:
                continue
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            named.append((name, topic_id, partitions.keys(), ErrorCode.NONE))
        return named

    def _check_group(self, ctx: RequestContext, group_id: str) -> None:
        """Raise KafkaError if the client may not describe the group."""
        allowed = self._allowed
        if allowed is not None and not allowed(
            ctx, Operation.DESCRIBE, ResourceType.GROUP, group_id
        ):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def _refusal(self, ctx: RequestContext, topic: str) -> ErrorCode:
        allowed = self._allowed
        if allowed is None or allowed(ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic):
            return ErrorCode.NONE
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    # ---- v0-7

    def _one_group(self, ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
        group_id = request.group_id
        try:
            self._check_group(ctx, group_id)
            find = self._groups.fetch_offset(group_id)
            unstable = self._unstable(group_id, request.require_stable)
            topics = self._topics_asked(ctx, group_id, request.topics, by_id=False)
        except KafkaError as error:
            return _refused(ctx.api_version, request, error.code)

        def topic(asked: _Asked) -> OffsetFetchResponseTopic:
            return OffsetFetchResponseTopic(
                name=asked[0] or "",
                partitions=self._partitions(OffsetFetchResponsePartition, asked, unstable, find),
            )

        if self._are_many((request,)):
            ctx.large = True
        return OffsetFetchResponse(topics=many.results(topics, topic))

    # ---- all

    def _unstable(self, group_id: str, require_stable: bool) -> Callable[[str, int], bool] | None:
        """The lookup of unstable offsets, if the request asks for stable ones.

        Looked up once, because the coordinator may resign while the answer is encoded in turns.
        """
        return self._groups.unstable_offsets(group_id) if require_stable else None

    def _partitions(
        self,
        group: type[_PartitionT],
        asked: _Asked,
        unstable: Callable[[str, int], bool] | None,
        find: _Find,
    ) -> Elements[_PartitionT]:
        name, topic_id, numbers, code = asked

        def partition(number: int) -> _PartitionT:
            if name is None or code is not ErrorCode.NONE:
                return _partition(group, number, None, code)
            if unstable is not None and unstable(name, number):
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
