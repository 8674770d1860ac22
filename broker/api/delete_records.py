"""DeleteRecords (key 21): raise the log start offset.

Behaviour (S-RET-6)
* Records below the offset become invisible at once; the next retention run deletes their segments.
  -1 stands for the high watermark; an offset above it is OFFSET_OUT_OF_RANGE.
* TOPIC_AUTHORIZATION_FAILED for a topic of which the client may not delete anything.
* POLICY_VIOLATION unless the topic's `cleanup.policy` has delete, INVALID_TOPIC_EXCEPTION for
  internal topics.
* The answer is the low watermark, the least log start of all live replicas, as soon as it has
  reached the offset (`delayed_produce`): at once where there are no others, else when the
  followers have fetched. After `timeout.ms` the answer is REQUEST_TIMED_OUT.
* Waiting fetches whose offset was deleted are woken (S-READ-6).
"""

from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.image import INTERNAL_TOPICS
from broker.replication.delayed_produce import AwaitedDeletion, DelayedProduce
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from protocol.types import TopicPartition
from storage.errors import StorageError
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    # KafkaApis.handleDeleteRecordsRequest
    asks=(Question(ResourceType.TOPIC, Operation.DELETE),),
    make=lambda s: DeleteRecordsHandler(s.replica_manager, allowed=s.allowed),
)

INVALID_LOW_WATERMARK: Final = -1


class DeleteRecordsHandler:
    """Raises the log start of partitions that are led here, up to the high watermark."""

    def __init__(
        self, replica_manager: ReplicaManager, *, allowed: Permissions | None = None
    ) -> None:
        self._allowed = allowed
        self._replicas = replica_manager

    async def __call__(
        self, ctx: RequestContext, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        """The response."""
        topics = []
        waiting: list[AwaitedDeletion] = []
        allowed = self._allowed
        for topic in request.topics:
            if allowed is not None and not allowed(
                ctx, Operation.DELETE, ResourceType.TOPIC, topic.name
            ):
                topics.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                await PAUSE
                continue
            partitions = []
            for asked in topic.partitions:
                partitions.append(self._one(topic.name, asked, waiting))
                await PAUSE
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
            await PAUSE
        if waiting:
            await self._wait(waiting, request.timeout_ms)
        return DeleteRecordsResponse(topics=topics)

    async def _wait(self, waiting: list[AwaitedDeletion], timeout_ms: int) -> None:
        """Wait until the followers have deleted, too; the outcome is written into the replies."""
        operation = DelayedProduce(waiting)
        if not operation.try_complete():
            keys = {awaited.partition.topic_partition for awaited in waiting}
            timeout_s = max(timeout_ms, 0) / 1000
            await self._replicas.purgatories.produce.wait(operation, keys, timeout_s)

    def _one(
        self, topic: str, asked: DeleteRecordsPartition, waiting: list[AwaitedDeletion]
    ) -> DeleteRecordsPartitionResult:
        reply = DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK
        )
        partition = None
        try:
            if topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            partition = self._replicas.partition(TopicPartition(topic, asked.partition_index))
            start = partition.delete_records(asked.offset)
            reply.low_watermark = partition.low_watermark
            if reply.low_watermark < start:
                waiting.append(AwaitedDeletion(partition, start, reply))
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
        return DeleteRecordsResponse(topics=[_refused(topic, code) for topic in request.topics])


def _refused(topic: DeleteRecordsTopic, code: ErrorCode) -> DeleteRecordsTopicResult:
    """`code` for every partition of a topic."""
    return DeleteRecordsTopicResult(
        name=topic.name,
        partitions=many.results(
            topic.partitions,
            lambda asked: DeleteRecordsPartitionResult(
                partition_index=asked.partition_index,
                low_watermark=INVALID_LOW_WATERMARK,
                error_code=code,
            ),
        ),
    )
