"""OffsetForLeaderEpoch (key 23): where a leader epoch ends.

Followers ask before they truncate (KIP-101, KIP-279), consumers to find out whether
the log that they read was truncated (KIP-320).

Behaviour (S-READ-12)
* The answer is the largest epoch not above the requested one, and the offset where it ends: the
  start of the next epoch, or the log end for the current one. (-1, -1) if the log has none.
* v2+: the client's current leader epoch is checked: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.

Version notes: v0 answers the end offset only; v3 adds the replica id, which a leader ignores.
"""

from typing import Final

from broker.api_facts import Api
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import CLUSTER_ACTION, Access, Operation, ResourceType, each
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
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
    accesses=(
        Access(
            ResourceType.TOPIC, Operation.DESCRIBE, each("topics", "topic"), unless=CLUSTER_ACTION
        ),
    ),
    make=lambda s: OffsetForLeaderEpochHandler(s.replica_manager),
)


class OffsetForLeaderEpochHandler:
    """Looks up where leader epochs end, which shows where a client's log diverges from this one."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replicas = replica_manager

    async def __call__(
        self, ctx: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """The response; others may run between two partitions."""
        ctx.released = True
        response = OffsetForLeaderEpochResponse()
        topics: list[OffsetForLeaderTopicResult] = []
        response.topics = topics
        for topic in request.topics:
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
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        EpochEndOffset(partition=asked.partition, error_code=code)
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
