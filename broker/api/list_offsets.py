"""ListOffsets (key 2): find offsets by timestamp.

Behaviour (S-TS-1 to S-TS-5)
* -1 latest (high watermark; read_committed: last stable offset), -2 earliest, -3 the record with
  the greatest timestamp, -4 earliest on local disk (the log start: nothing is tiered), -5 latest
  tiered and -6 earliest pending upload (both unknown: offset -1).
* Any other timestamp finds the first record, by offset, that is not older; offset and timestamp are
  -1 if the client may see no such record.
* A replica (replica id not -1) may see records up to the log end.
* Only a leader answers, but to replica id -2 a follower answers, too, from its own log.
* A partition that is named twice is an INVALID_REQUEST both times, as in Kafka.
* A topic that the client may not describe is TOPIC_AUTHORIZATION_FAILED, whatever else is wrong.

Version notes
* v0 answers with a list of segment base offsets, the newest first (S-TS-5).
* v4+: the client's leader epoch is checked, and the answer has the found record's epoch.
* v0-4 do not know OFFSET_NOT_AVAILABLE; they get LEADER_NOT_AVAILABLE.
* Special timestamps need the version that brought them (-3 v7, -4 v8, -5 v9, -6 v11), else
  UNSUPPORTED_VERSION; unknown negative ones get that in every version.
* v10+: the timeout is for tiered storage only; answers here never wait.
"""

import logging
from collections import Counter
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.replication.failures import REFUSALS, refusal_of
from broker.replication.isolation import isolation_of
from broker.replication.offset_lookup import (
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    look_up_offset,
    offsets_before,
)
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.world.workers import WorkerDied
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from protocol.types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    TopicPartition,
)
from storage.errors import StorageError
from storage.log.looking import Look
from storage.log.results import FetchIsolation
from storage.waits import PAUSE

logger = logging.getLogger(__name__)

API: Final = Api(
    key=ApiKey.LIST_OFFSETS,
    versions=(0, 11),
    most_elements=10_000,
    in_workers=True,
    ends_with_client=True,
    # KafkaApis.handleListOffsetRequest
    asks=(Question(ResourceType.TOPIC, Operation.DESCRIBE),),
    make=lambda s: ListOffsetsHandler(s.replica_manager, s.looker.look, allowed=s.allowed),
)

CONSUMER: Final = -1
DEBUGGING: Final = -2
"""The replica id of one that looks at replicas (`ListOffsetsRequest.DEBUGGING_REPLICA_ID`)."""
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE: Final = 5

_FIRST_VERSION_OF: Final = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}


class ListOffsetsHandler:
    """Finds offsets by time in partitions that are led here, among records the asker may see."""

    def __init__(
        self, replica_manager: ReplicaManager, look: Look, *, allowed: Permissions | None = None
    ) -> None:
        """`look` opens batches that are not small."""
        self._allowed = allowed
        self._replicas = replica_manager
        self._look = look

    async def __call__(
        self, ctx: RequestContext, request: ListOffsetsRequest
    ) -> ListOffsetsResponse:
        """The response; others may run between two partitions, and while one is searched."""
        ctx.released = True
        isolation = isolation_of(
            is_replica=request.replica_id != CONSUMER, isolation_level=request.isolation_level
        )
        named: Counter[tuple[str, int]] = Counter()
        for topic in request.topics:
            for asked in topic.partitions:
                named[topic.name, asked.partition_index] += 1
                await PAUSE
        response = ListOffsetsResponse()
        topics: list[ListOffsetsTopicResponse] = []
        response.topics = topics
        allowed = self._allowed
        for topic in request.topics:
            if allowed is not None and not allowed(
                ctx, Operation.DESCRIBE, ResourceType.TOPIC, topic.name
            ):
                topics.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                await PAUSE
                continue
            replies: list[ListOffsetsPartitionResponse] = []
            for asked in topic.partitions:
                tp = TopicPartition(topic.name, asked.partition_index)
                replies.append(
                    await self._one(
                        ctx.api_version,
                        tp,
                        asked,
                        isolation,
                        named_twice=named[tp] > 1,
                        follower_answers=request.replica_id == DEBUGGING,
                    )
                )
                await PAUSE
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=replies))
            await PAUSE
        return response

    async def _one(
        self,
        version: int,
        tp: TopicPartition,
        asked: ListOffsetsPartition,
        isolation: FetchIsolation,
        *,
        named_twice: bool,
        follower_answers: bool,
    ) -> ListOffsetsPartitionResponse:
        reply = ListOffsetsPartitionResponse(partition_index=tp.partition)
        partition = None
        try:
            if named_twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            partition = self._replicas.replica(tp)
            if version == 0:
                reply.old_style_offsets = offsets_before(
                    partition,
                    asked.timestamp,
                    asked.max_num_offsets,
                    follower_answers=follower_answers,
                )
                return reply
            if asked.timestamp < 0 and version < _FIRST_VERSION_OF.get(asked.timestamp, 1 << 15):
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
            found = await look_up_offset(
                partition,
                asked.timestamp,
                isolation,
                self._look,
                asked.current_leader_epoch,
                follower_answers=follower_answers,
            )
        except WorkerDied as death:
            logger.warning("The offset for a time in %s was not found: %s", tp, death)
            reply.error_code = _code_for(version, ErrorCode.OFFSET_NOT_AVAILABLE)  # clients retry
            return reply
        except REFUSALS as error:
            if isinstance(error, StorageError) and partition is not None:
                self._replicas.storage_failed(partition, error)
            reply.error_code = _code_for(version, refusal_of(error).code)
            return reply
        if found is not None:
            reply.timestamp = found.timestamp
            reply.offset = found.offset
            reply.leader_epoch = found.leader_epoch
        return reply

    def error_response(
        self, ctx: RequestContext, request: ListOffsetsRequest, code: ErrorCode
    ) -> ListOffsetsResponse:
        """`code` for every partition."""
        return ListOffsetsResponse(topics=[_refused(topic, code) for topic in request.topics])


def _refused(topic: ListOffsetsTopic, code: ErrorCode) -> ListOffsetsTopicResponse:
    """`code` for every partition of a topic."""
    return ListOffsetsTopicResponse(
        name=topic.name,
        partitions=many.results(
            topic.partitions,
            lambda asked: ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=code
            ),
        ),
    )


def _code_for(version: int, code: ErrorCode) -> ErrorCode:
    if code == ErrorCode.OFFSET_NOT_AVAILABLE and version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code
