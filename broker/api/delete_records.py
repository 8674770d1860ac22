"""DeleteRecords (key 21): raise the log start offset.

Behaviour (S-RET-6)
* Records below the offset become invisible at once; the next retention run deletes their segments.
  -1 stands for the high watermark; an offset above it is OFFSET_OUT_OF_RANGE.
* POLICY_VIOLATION unless the topic's `cleanup.policy` has delete, INVALID_TOPIC_EXCEPTION for
  internal topics.
* The answer is the low watermark: the least log start offset of all replicas. This broker is the
  only replica yet, so nothing is waited for and `timeout.ms` has no effect.
* Waiting fetches whose offset was deleted are woken (S-READ-6).
"""

from typing import Final

from broker.api_facts import Api
from broker.cluster.image import INTERNAL_TOPICS
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import Operation, topics
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    # KafkaApis.handleDeleteRecordsRequest
    accesses=(topics(Operation.DELETE),),
    make=lambda s: DeleteRecordsHandler(s.replica_manager),
)

INVALID_LOW_WATERMARK: Final = -1


class DeleteRecordsHandler:
    """Raises the log start of partitions that are led here, up to the high watermark."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replicas = replica_manager

    async def __call__(
        self, ctx: RequestContext, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        """The response."""
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                partitions.append(self._one(topic.name, asked))
                await PAUSE
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
            await PAUSE
        return DeleteRecordsResponse(topics=topics)

    def _one(self, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        reply = DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK
        )
        partition = None
        try:
            if topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            partition = self._replicas.partition(TopicPartition(topic, asked.partition_index))
            reply.low_watermark = partition.delete_records(asked.offset)
        except KafkaError as error:
            if isinstance(error, StorageError) and partition is not None:
                self._replicas.storage_failed(partition, error)
            reply.error_code = error.code
        else:
            self._replicas.wake(partition)
        return reply

    def error_response(
        self, ctx: RequestContext, request: DeleteRecordsRequest, code: ErrorCode
    ) -> DeleteRecordsResponse:
        """`code` for every partition."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=asked.partition_index,
                            low_watermark=INVALID_LOW_WATERMARK,
                            error_code=code,
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
