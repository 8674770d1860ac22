"""AlterReplicaLogDirs (key 34): move partitions between the directories of `log.dirs`.

Behaviour
* The answer says whether a move was begun; until it is over, DescribeLogDirs shows the future log
  and its lag.
* Naming the directory where the partition already lies cancels a move under way, without an error.
  Naming another target than before starts the move over.
* LOG_DIR_NOT_FOUND for a path outside `log.dirs`, KAFKA_STORAGE_ERROR if that directory or the
  partition's own is offline, UNKNOWN_TOPIC_OR_PARTITION if the partition does not exist,
  REPLICA_NOT_AVAILABLE if this broker has no log of it, INVALID_TOPIC_EXCEPTION if the topic's name
  is too long for the name of a future log.
* A partition named for several directories moves to the last one.
* Results are grouped by topic.
"""

from typing import Final

from broker.api_facts import Api
from broker.replication.log_mover import LogMover
from broker.request import RequestContext
from broker.security.access import ALTER_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    versions=(0, 2),
    most_elements=50_000,
    # KafkaApis.handleAlterReplicaLogDirsRequest
    accesses=(ALTER_CLUSTER,),
    make=lambda s: AlterReplicaLogDirsHandler(s.log_mover),
)


class AlterReplicaLogDirsHandler:
    """Begins, redirects and cancels moves of partitions between log directories."""

    def __init__(self, mover: LogMover) -> None:
        self._mover = mover

    async def __call__(
        self, ctx: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        """The response, when all moves are begun."""
        codes = {}
        for tp, directory in _wishes(request).items():
            codes[tp] = self._move(tp, directory)
            await PAUSE
        return _response(codes)

    def _move(self, tp: TopicPartition, directory: str) -> ErrorCode:
        try:
            self._mover.move(tp, directory)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def error_response(
        self, ctx: RequestContext, request: AlterReplicaLogDirsRequest, code: ErrorCode
    ) -> AlterReplicaLogDirsResponse:
        """`code` for every partition."""
        return _response(dict.fromkeys(_wishes(request), code))


def _wishes(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic.name, index): asked.path
        for asked in request.dirs
        for topic in asked.topics
        for index in topic.partitions
    }


def _response(codes: dict[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for tp, code in codes.items():
        by_topic.setdefault(tp.topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=code)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ]
    )
