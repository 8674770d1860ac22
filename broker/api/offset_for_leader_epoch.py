"""OffsetForLeaderEpoch (key 23): where a leader epoch ends.

Versions: 0-4. Followers ask before they truncate (KIP-101, KIP-279), consumers to find out whether
the log that they read was truncated (KIP-320).

Behaviour (S-READ-12)
* The answer is the largest epoch not above the requested one, and the offset where it ends: the
  start of the next epoch, or the log end for the current one. (-1, -1) if the log has none.
* v2+: the client's current leader epoch is checked: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.

Version notes: v0 answers the end offset only; v3 adds the replica id, which a leader ignores.
"""

from typing import Final

from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
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

VERSIONS: Final = (0, 4)


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
