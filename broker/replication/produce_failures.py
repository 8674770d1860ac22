"""Produce's answer for a partition that was not appended to, and the counters of such failures.

Source: `kafka.server.ReplicaManager.appendToLocalLog`, `kafka.server.KafkaApis` (KIP-467).
"""

from typing import Final

from broker.replication.failures import Refusal
from broker.replication.partition import Partition
from protocol.errors import ErrorCode
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

FIRST_VERSION_WITH_STORAGE_ERROR: Final = 4

_NO_OFFSET: Final = -1

EVERYDAY: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
"""Expected errors: they do not count in FailedProduceRequestsPerSec, and their answers have no log
start offset."""


def topic_refused(topic: TopicProduceData, refusal: Refusal, version: int) -> TopicProduceResponse:
    """The same refusal for every partition of a topic."""
    topic_reply = TopicProduceResponse()
    topic_reply.name = topic.name
    topic_reply.topic_id = topic.topic_id
    topic_reply.partition_responses = replies = []
    for data in topic.partition_data:
        reply = PartitionProduceResponse()
        reply.index = data.index
        refuse(reply, refusal, version)
        replies.append(reply)
    return topic_reply


def refuse(reply: PartitionProduceResponse, refusal: Refusal, version: int) -> None:
    """Write a refusal into the reply of a partition."""
    code = refusal.code
    if code == ErrorCode.KAFKA_STORAGE_ERROR and version < FIRST_VERSION_WITH_STORAGE_ERROR:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    reply.error_code = code
    reply.base_offset = _NO_OFFSET
    reply.error_message = refusal.message
    if refusal.record_errors:
        reply.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refusal.record_errors
        ]


def count_failure(partition: Partition, refusal: Refusal, size: int) -> None:
    """Count a refused append of `size` bytes in the partition's topic."""
    statistics = partition.statistics
    code = refusal.code
    if code not in EVERYDAY:
        statistics.failed_produce_requests += 1
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        statistics.bytes_rejected += size
    elif code == ErrorCode.CORRUPT_MESSAGE:
        statistics.invalid_message_crc_records += 1
    elif code == ErrorCode.INVALID_RECORD:
        if refusal.record_errors and "compact" in partition.log.config.cleanup_policy:
            statistics.no_key_compacted_topic_records += len(refusal.record_errors)
        else:
            statistics.invalid_offset_or_sequence_records += 1
