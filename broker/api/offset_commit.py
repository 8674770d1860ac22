"""OffsetCommit (key 8): store the offsets that a group has read up to.

Behaviour (S-GRP-4)
* All offsets of a request are written to `__consumer_offsets` as one batch (very many as several,
  decision 40), and the response goes out when they are durable.
* Each partition is checked on its own: UNKNOWN_TOPIC_OR_PARTITION if it does not exist,
  OFFSET_METADATA_TOO_LARGE above `offset.metadata.max.bytes`; the others are committed all the
  same. A refusal of the group (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, …) is
  the result of all partitions that exist.
* Generation -1 without a member id comes from a consumer that joined no group: it may commit while
  the group is empty.

Version notes
* v0 once wrote to ZooKeeper; here it commits like any other version. v1's timestamps are ignored,
  as in Kafka.
* v2-4: retention_time_ms; such offsets expire that long after the commit.
* v9+: GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION for a group that does not exist (KIP-848).
* v10: topics by id; UNKNOWN_TOPIC_ID.
"""

from typing import Final

from broker.api_facts import Api
from broker.cluster.image import MetadataImage, TopicImage
from broker.coordinator.group.checked_commits import CheckedCommits
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import CommitRequest, PartitionCommit
from broker.request import RequestContext
from broker.security.access import READ_GROUP, Operation, topics_by_id_from
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from storage.waits import PAUSE, Signal

FIRST_VERSION_WITH_GROUP_NOT_FOUND: Final = 9
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
DEFAULT_RETENTION: Final = -1


API: Final = Api(
    key=ApiKey.OFFSET_COMMIT,
    versions=(0, 10),
    # KafkaApis.handleOffsetCommitRequest
    accesses=(
        READ_GROUP,
        topics_by_id_from(FIRST_VERSION_WITH_TOPIC_IDS, Operation.READ),
    ),
    make=lambda s: OffsetCommitHandler(s.group_coordinator, s.image),
)


class OffsetCommitHandler:
    """Checks topics and sizes of commits, and hands them to the group coordinator."""

    def __init__(self, groups: GroupCoordinator, image: MetadataImage) -> None:
        self._groups = groups
        self._image = image

    async def __call__(
        self, ctx: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        """The response, when the offsets are durable.

        Very many are written as several batches, one after the other. If a batch fails, the later
        ones are not written and get the same code.
        """
        topics: list[OffsetCommitResponseTopic] = []
        response = OffsetCommitResponse(topics=topics)
        checked: CheckedCommits[OffsetCommitResponsePartition] = CheckedCommits(
            self._groups.settings.metadata_max_length, large=ctx.large
        )
        for asked in request.topics:
            topic, missing = self._find(ctx, asked)
            results = await checked.check(
                asked.partitions, topic, missing, OffsetCommitResponsePartition
            )
            topics.append(
                OffsetCommitResponseTopic(
                    name=asked.name, topic_id=asked.topic_id, partitions=results
                )
            )
        if not checked.accepted and not checked.too_long:
            return response
        ctx.released = True
        code = ErrorCode.NONE
        for commits, accepted in checked.batches():
            if code is ErrorCode.NONE:
                written: Signal[ErrorCode] = Signal()
                try:
                    self._groups.commit_offsets(_request_of(ctx, request, commits), written.fire)
                except KafkaError as error:
                    # The group's refusal is the result of all partitions that exist.
                    code = error.code
                    _settle(checked.too_long, code)
                else:
                    # The batches of a large request are all written, even if the client leaves.
                    code = await (written if ctx.large else written.parked())
            _settle(accepted, code)
            if ctx.large:
                await PAUSE
        return response

    def _find(
        self, ctx: RequestContext, asked: OffsetCommitRequestTopic
    ) -> tuple[TopicImage | None, ErrorCode]:
        """The topic, and the code to answer if it is None."""
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return self._image.topic_by_id(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
        return self._image.topic(asked.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def error_response(
        self, ctx: RequestContext, request: OffsetCommitRequest, code: ErrorCode
    ) -> OffsetCommitResponse:
        """`code` for every partition."""
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=one.partition_index, error_code=code
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _request_of(
    ctx: RequestContext, request: OffsetCommitRequest, commits: list[PartitionCommit]
) -> CommitRequest:
    retention = request.retention_time_ms
    return CommitRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id_or_member_epoch,
        retention_ms=None if retention == DEFAULT_RETENTION else retention,
        unknown_group=(
            ErrorCode.GROUP_ID_NOT_FOUND
            if ctx.api_version >= FIRST_VERSION_WITH_GROUP_NOT_FOUND
            else ErrorCode.ILLEGAL_GENERATION
        ),
        partitions=tuple(commits),
    )


def _settle(results: list[OffsetCommitResponsePartition], code: ErrorCode) -> None:
    if code is not ErrorCode.NONE:
        for result in results:
            result.error_code = code
