"""DescribeLogDirs (key 35): where partitions lie and how big they are.

Versions: 0-4.

Behaviour
* One result per configured directory; one that is offline has KAFKA_STORAGE_ERROR and no topics.
* Null topics mean all; a named partition that is not here is left out.
* The lag is how far a replica is behind its high watermark: 0 for a leader. Logs that move between
  directories (future logs) do not exist here yet.

Version notes
* v3+: an error for the response as a whole. v4+: size and free space of the volume, -1 where the
  system does not say; asked in a thread, for a dead network volume blocks.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import trio

from broker.request import RequestContext
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from protocol.types import TopicPartition

VERSIONS: Final = (0, 4)

UNKNOWN_SIZE: Final = -1


class SizedLog(Protocol):
    """What is needed of `storage.log.log.Log`."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Whose log it is."""
        ...

    @property
    def dir(self) -> str:
        """Its directory, below a log directory."""
        ...

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        ...


class LogDirectories(Protocol):
    """What is needed of `storage.log_manager.LogManager`."""

    @property
    def live_dirs(self) -> Iterable[str]:
        """Log directories in use."""
        ...

    @property
    def offline_dirs(self) -> Iterable[str]:
        """Log directories that failed."""
        ...

    def all_logs(self) -> Iterable[SizedLog]:
        """All logs that are open."""
        ...


class Volumes(Protocol):
    """What is needed of `storage.filesystem.FileSystem`."""

    def usage(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds `path`. Raises OSError."""
        ...


class DescribeLogDirsHandler:
    """See the module."""

    def __init__(self, log_manager: LogDirectories, volumes: Volumes) -> None:
        self._log_manager = log_manager
        self._volumes = volumes

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response; waits for the volumes' sizes."""
        live = list(self._log_manager.live_dirs)
        usages = await trio.to_thread.run_sync(self._usages, live)
        sizes = self._sizes(_wanted(request))
        results = [
            DescribeLogDirsResult(
                error_code=ErrorCode.NONE,
                log_dir=directory,
                topics=_topics(sizes.get(directory, {})),
                total_bytes=usages[directory][0],
                usable_bytes=usages[directory][1],
            )
            for directory in live
        ]
        results += [
            DescribeLogDirsResult(
                error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory, topics=[]
            )
            for directory in self._log_manager.offline_dirs
        ]
        return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)

    def _usages(self, directories: list[str]) -> dict[str, tuple[int, int]]:
        usages = {}
        for directory in directories:
            try:
                usages[directory] = self._volumes.usage(directory)
            except OSError:
                usages[directory] = (UNKNOWN_SIZE, UNKNOWN_SIZE)
        return usages

    def _sizes(self, wanted: set[tuple[str, int]] | None) -> dict[str, dict[TopicPartition, int]]:
        """Log directory to the sizes of its partitions."""
        sizes: dict[str, dict[TopicPartition, int]] = {}
        for log in self._log_manager.all_logs():
            if wanted is None or log.topic_partition in wanted:
                directory = log.dir.rpartition("/")[0]
                sizes.setdefault(directory, {})[log.topic_partition] = log.size
        return sizes

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The code for the response as a whole (v3+; older versions show no directory)."""
        return DescribeLogDirsResponse(error_code=code, results=[])


def _wanted(request: Any) -> set[tuple[str, int]] | None:
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


def _topics(sizes: Mapping[TopicPartition, int]) -> list[Any]:
    by_topic: dict[str, list[Any]] = {}
    for tp, size in sorted(sizes.items()):
        by_topic.setdefault(tp.topic, []).append(
            DescribeLogDirsPartition(partition_index=tp.partition, partition_size=size)
        )
    return [DescribeLogDirsTopic(name=name, partitions=p) for name, p in by_topic.items()]
