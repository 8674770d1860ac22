"""OffsetForLeaderEpoch (key 23): where a leader epoch ends.

Followers ask before they truncate (KIP-101, KIP-279), consumers to find out whether
the log that they read was truncated (KIP-320).

Behaviour (S-READ-12)
* The answer is the largest epoch not above the requested one, and the offset where it ends: the
  start of the next epoch, or the log end for the current one. (-1, -1) if the log has none.
* v2+: the client's current leader epoch is checked: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
* Members of the cluster may ask about every topic, consumers about those that they may describe;
  others are TOPIC_AUTHORIZATION_FAILED.

Version notes: v0 answers the end offset only; v3 adds the replica id, which a leader ignores.
"""

from typing import Final

from broker import many
from broker.api_facts import Api
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(0, 4),
    most_elements=10_000,
    in_workers=True,
    ends_with_client=True,
    # KafkaApis.handleOffsetForLeaderEpochRequest
    asks=(
        Question(ResourceType.CLUSTER, Operation.CLUSTER_ACTION),
        Question(ResourceType.TOPIC, Operation.DESCRIBE),
    ),
    make=lambda s: OffsetForLeaderEpochHandler(s.replica_manager, allowed=s.allowed),
)


class OffsetForLeaderEpochHandler:
    """Looks up where leader epochs end, which shows where a client's log diverges from this one."""

    def __init__(
        self, replica_manager: ReplicaManager, *, allowed: Permissions | None = None
    ) -> None:
        self._allowed = allowed
        self._replicas = replica_manager

    async def __call__(
        self, ctx: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """The response; others may run between two partitions."""
        ctx.released = True
        response = OffsetForLeaderEpochResponse()
        topics: list[OffsetForLeaderTopicResult] = []
        response.topics = topics
        allowed = self._allowed
        if allowed is not None and allowed.quietly(
            ctx, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            allowed = None
        for topic in request.topics:
            if allowed is not None and not allowed(
                ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic
            ):
                topics.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                await PAUSE
                continue
            replies: list[EpochEndOffset] = []
            for asked in topic.partitions:
                replies.append(self._one(topic.topic, asked))
                await PAUSE
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=replies))
            await PAUSE
        return response

    def _one(self, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        reply = EpochEndOffset(partition=asked.partition)
        try:
            partition = self._replicas.partition(TopicPartition(topic, asked.partition))
            reply.leader_epoch, reply.end_offset = partition.end_offset_for_epoch(
                asked.leader_epoch, asked.current_leader_epoch
            )
        except KafkaError as error:
            reply.error_code = error.code
        return reply

    def error_response(
        self, ctx: RequestContext, request: OffsetForLeaderEpochRequest, code: ErrorCode
    ) -> OffsetForLeaderEpochResponse:
        """`code` for every partition."""
        return OffsetForLeaderEpochResponse(
            topics=[_refused(topic, code) for topic in request.topics]
        )


def _refused(topic: OffsetForLeaderTopic, code: ErrorCode) -> OffsetForLeaderTopicResult:
    """`code` for every partition of a topic."""
    return OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=many.results(
            topic.partitions,
            lambda asked: EpochEndOffset(partition=asked.partition, error_code=code),
        ),
    )
