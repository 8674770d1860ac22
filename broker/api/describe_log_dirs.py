"""DescribeLogDirs (key 35): the log directories, and the partitions in them with their sizes.

Behaviour
* One result per configured directory; an offline one has KAFKA_STORAGE_ERROR and no topics.
* Null topics mean all; a named partition without a log here is left out.
* The lag, in offsets, is how far the log end is behind the high watermark: 0 for a leader. A log
  that is being moved is listed twice: where it is served, and as a future log, whose lag is the
  distance to the served log's end.

Version notes
* v3+: an error for the response as a whole. v4+: size and free bytes of the volume, -1 where the
  system does not say; a thread asks for them, because a dead network volume blocks.
* v5+: whether a directory in service gets no new partitions (`cordoned.log.dirs`, KIP-1066).
"""

from typing import Final

from broker import many
from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from broker.security.access import DESCRIBE_CLUSTER
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from protocol.types import TopicPartition
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log_manager import LogManager
from storage.waits import PAUSE, call

API: Final = Api(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    versions=(0, 5),
    most_elements=50_000,
    ends_with_client=True,
    # KafkaApis.handleDescribeLogDirsRequest
    accesses=(DESCRIBE_CLUSTER,),
    make=lambda s: DescribeLogDirsHandler(s.log_manager, s.volumes),
)

UNKNOWN_SIZE: Final = -1
UNKNOWN_LAG: Final = -1


class DescribeLogDirsHandler(CodeAlone):
    """Lists the sizes of logs by directory, the room on each volume, and moves under way."""

    response = DescribeLogDirsResponse

    def __init__(self, log_manager: LogManager, volumes: FileSystem) -> None:
        self._log_manager = log_manager
        self._volumes = volumes

    async def __call__(
        self, ctx: RequestContext, request: DescribeLogDirsRequest
    ) -> DescribeLogDirsResponse:
        """The response; waits for the volumes' sizes."""
        live = list(self._log_manager.live_dirs)
        usages = await call(_usages, self._volumes, live)
        found = await self._partitions(_wanted(request))
        cordoned = self._log_manager.cordoned_dirs
        results = [
            DescribeLogDirsResult(
                error_code=ErrorCode.NONE,
                log_dir=directory,
                topics=await _topics(found.get(directory, [])),
                total_bytes=usages[directory][0],
                usable_bytes=usages[directory][1],
                is_cordoned=directory in cordoned,
            )
            for directory in live
        ]
        results += [
            DescribeLogDirsResult(
                error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory, topics=[]
            )
            for directory in self._log_manager.offline_dirs
        ]
        ctx.large |= sum(map(len, found.values())) > many.MANY
        return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)

    async def _partitions(
        self, wanted: set[tuple[str, int]] | None
    ) -> dict[str, list[tuple[TopicPartition, DescribeLogDirsPartition]]]:
        """The wanted partitions by log directory."""
        found: dict[str, list[tuple[TopicPartition, DescribeLogDirsPartition]]] = {}

        def add(log: Log, lag: int, *, is_future: bool) -> None:
            tp = log.topic_partition
            if wanted is None or tp in wanted:
                described = DescribeLogDirsPartition(
                    partition_index=tp.partition,
                    partition_size=log.size,
                    offset_lag=lag,
                    is_future_key=is_future,
                )
                found.setdefault(log.dir.rpartition("/")[0], []).append((tp, described))

        for log in list(self._log_manager.all_logs()):
            add(log, max(log.high_watermark - log.log_end_offset, 0), is_future=False)
            await PAUSE
        for log in self._log_manager.future_logs():
            source = self._log_manager.get_log(log.topic_partition)
            lag = UNKNOWN_LAG if source is None else source.log_end_offset - log.log_end_offset
            add(log, lag, is_future=True)
        return found


def _usages(volumes: FileSystem, directories: list[str]) -> dict[str, tuple[int, int]]:
    usages = {}
    for directory in directories:
        try:
            usages[directory] = volumes.usage(directory)
        except OSError:
            usages[directory] = (UNKNOWN_SIZE, UNKNOWN_SIZE)
    return usages


def _wanted(request: DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


async def _topics(
    found: list[tuple[TopicPartition, DescribeLogDirsPartition]],
) -> list[DescribeLogDirsTopic]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for tp, described in sorted(found, key=lambda pair: pair[0]):
        by_topic.setdefault(tp.topic, []).append(described)
        await PAUSE
    return [DescribeLogDirsTopic(name=name, partitions=p) for name, p in by_topic.items()]
