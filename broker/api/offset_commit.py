"""OffsetCommit (key 8): store the offsets that a group has read up to.

Behaviour (S-GRP-4)
* All offsets of a request are written to `__consumer_offsets` as one batch (very many as several,
  decision 40), and the response goes out when they are durable.
* The whole request is GROUP_AUTHORIZATION_FAILED if the client may not read in the group. A topic
  that the client may not read is TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
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
from broker.cluster.image import Found, MetadataImage
from broker.coordinator.group.checked_commits import CheckedCommits
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.values import CommitRequest, PartitionCommit
from broker.request import ReplyOrWork, RequestContext
from broker.security.access import READ_GROUP, Operation, Question, ResourceType
from broker.security.named_topics import NamedTopics
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from storage.waits import PAUSE, Signal, fired

FIRST_VERSION_WITH_GROUP_NOT_FOUND: Final = 9
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
DEFAULT_RETENTION: Final = -1


API: Final = Api(
    key=ApiKey.OFFSET_COMMIT,
    versions=(0, 10),
    # KafkaApis.handleOffsetCommitRequest
    accesses=(READ_GROUP,),
    asks=(Question(ResourceType.TOPIC, Operation.READ),),
    make=lambda s: OffsetCommitHandler(s.group_coordinator, s.image, allowed=s.allowed),
)


class OffsetCommitHandler:
    """Checks topics and sizes of commits, and hands them to the group coordinator."""

    def __init__(
        self,
        groups: GroupCoordinator,
        image: MetadataImage,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._topics = NamedTopics(image, allowed, Operation.READ)
        self._groups = groups

    def __call__(self, ctx: RequestContext, request: OffsetCommitRequest) -> ReplyOrWork:
        """The response, when the offsets are durable: at once if no other broker must have them."""
        if ctx.large:
            return self._in_batches(ctx, request)
        checked = self._nothing_checked(ctx)
        topics: list[OffsetCommitResponseTopic] = []
        for asked in request.topics:
            results = checked.check(asked.partitions, self._find(ctx, asked))
            topics.append(_result_of(asked, results))
        response = OffsetCommitResponse(topics=topics)
        if not checked.accepted and not checked.too_long:
            return response
        ctx.released = True
        written = self._commit(ctx, request, checked.commits, checked)
        if not written.fired:
            return _when_written(written, checked.accepted, response)
        _settle(checked.accepted, written.value)
        return response

    async def _in_batches(
        self, ctx: RequestContext, request: OffsetCommitRequest
    ) -> OffsetCommitResponse:
        """The response to very many, which are written as several batches, one after the other.

        If a batch fails, the later ones are not written and get the same code. All are written,
        even if the client leaves.
        """
        checked = self._nothing_checked(ctx)
        topics: list[OffsetCommitResponseTopic] = []
        for asked in request.topics:
            results = await checked.check_in_turns(asked.partitions, self._find(ctx, asked))
            topics.append(_result_of(asked, results))
        response = OffsetCommitResponse(topics=topics)
        if not checked.accepted and not checked.too_long:
            return response
        ctx.released = True
        code = ErrorCode.NONE
        for commits, accepted in checked.batches():
            if code is ErrorCode.NONE:
                code = await self._commit(ctx, request, commits, checked)
            _settle(accepted, code)
            await PAUSE
        return response

    def _nothing_checked(
        self, ctx: RequestContext
    ) -> CheckedCommits[OffsetCommitResponsePartition]:
        most = self._groups.settings.metadata_max_length
        return CheckedCommits(most, OffsetCommitResponsePartition, large=ctx.large)

    def _commit(
        self,
        ctx: RequestContext,
        request: OffsetCommitRequest,
        commits: list[PartitionCommit],
        checked: CheckedCommits[OffsetCommitResponsePartition],
    ) -> Signal[ErrorCode]:
        """Commit; the signal brings the code of the write, or the group's refusal.

        A refusal is the result of all partitions that exist.
        """
        try:
            return self._groups.commit_offsets(_request_of(ctx, request, commits))
        except KafkaError as error:
            _settle(checked.too_long, error.code)
            return fired(error.code)

    def _find(self, ctx: RequestContext, asked: OffsetCommitRequestTopic) -> Found:
        if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return self._topics.by_id(ctx, asked.topic_id)
        return self._topics.by_name(ctx, asked.name)

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


def _result_of(
    asked: OffsetCommitRequestTopic, results: list[OffsetCommitResponsePartition]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=results)


async def _when_written(
    written: Signal[ErrorCode],
    accepted: list[OffsetCommitResponsePartition],
    response: OffsetCommitResponse,
) -> OffsetCommitResponse:
    _settle(accepted, await written.parked())
    return response


def _settle(results: list[OffsetCommitResponsePartition], code: ErrorCode) -> None:
    if code is not ErrorCode.NONE:
        for result in results:
            result.error_code = code
