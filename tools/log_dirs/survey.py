"""Asks brokers about their log directories (DescribeLogDirs)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tools.log_ends import Place
from tools.wire.brokers import Brokers
from tools.wire.refusals import require_done, sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One log: a replica of a partition, or a future log, its copy in another directory."""

    place: Place
    broker: int
    directory: str
    size: int
    """Bytes of all its segments."""
    lag: int
    """Offsets by which a future log is behind its source, or a follower behind its leader."""
    is_future: bool
    """Whether a move is filling it; it is not served yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """One log directory of a broker."""

    broker: int
    path: str
    error: str | None
    """Why it is offline; None if it is in use."""
    total_bytes: int | None
    """Size of the volume; None if the broker does not say, as before Kafka 3.3."""
    usable_bytes: int | None
    copies: tuple[Copy, ...]

    @property
    def size(self) -> int:
        """Bytes of all logs in it."""
        return sum(copy.size for copy in self.copies)


def directories(
    cluster: Brokers, broker_ids: Iterable[int], places: Sequence[Place] | None = None
) -> list[Directory]:
    """Return the directories of these brokers, with all logs or those of `places`.

    Raises CommandError.
    """
    topics = None
    if places is not None:
        topics = [
            DescribableLogDirTopic(topic=name, partitions=[number for _, number in of_topic])
            for name, of_topic in groupby(sorted(places), key=lambda place: place[0])
        ]
    found = []
    for broker in broker_ids:
        request = DescribeLogDirsRequest(topics=topics)
        answer = cluster.broker(broker).call(request, DescribeLogDirsResponse)
        require_done(answer.error_code, what=f"broker {broker}")
        for told in answer.results:
            copies = tuple(
                Copy(
                    place=(topic.name, partition.partition_index),
                    broker=broker,
                    directory=told.log_dir,
                    size=partition.partition_size,
                    lag=partition.offset_lag,
                    is_future=partition.is_future_key,
                )
                for topic in told.topics
                for partition in topic.partitions
            )
            found.append(
                Directory(
                    broker=broker,
                    path=told.log_dir,
                    error=sentence(told.error_code) if told.error_code else None,
                    total_bytes=_known(told.total_bytes),
                    usable_bytes=_known(told.usable_bytes),
                    copies=tuple(sorted(copies, key=lambda copy: copy.place)),
                )
            )
    return sorted(found, key=lambda each: (each.broker, each.path))


def _known(size: int) -> int | None:
    return size if size >= 0 else None
