"""Which of the offsets that OffsetCommit and TxnOffsetCommit name may be committed.

Partition by partition: what the metadata does not know and metadata longer than
`offset.metadata.max.bytes` are refused at once; the rest goes to the group.
"""

from collections.abc import Callable
from typing import Any

from broker.cluster.image import TopicImage
from broker.coordinator.group.values import PartitionCommit
from protocol.errors import ErrorCode


class CheckedCommits:
    """What is left of one request, gathered topic by topic."""

    __slots__ = ("_max_metadata", "accepted", "commits", "too_long")

    def __init__(self, max_metadata: int) -> None:
        self._max_metadata = max_metadata
        self.commits: list[PartitionCommit] = []
        self.accepted: list[Any] = []
        """Their results in the response: they hang on what becomes of the commit."""
        self.too_long: list[Any] = []
        """Results of partitions that exist, with metadata that is too long."""

    def check(
        self,
        partitions: list[Any],
        topic: TopicImage | None,
        unknown_topic: ErrorCode,
        make_result: Callable[[], Any],
    ) -> list[Any]:
        """The results of one topic's partitions; those without error are to be committed."""
        results: list[Any] = []
        for one in partitions:
            result = make_result()
            index = result.partition_index = one.partition_index
            metadata = one.committed_metadata
            results.append(result)
            if topic is None:
                result.error_code = unknown_topic
            elif index not in topic.partitions:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif metadata is not None and len(metadata) > self._max_metadata:
                result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                self.too_long.append(result)
            else:
                self.accepted.append(result)
                self.commits.append(
                    PartitionCommit(
                        topic=topic.name,
                        partition=index,
                        offset=one.committed_offset,
                        leader_epoch=one.committed_leader_epoch,
                        metadata=metadata or "",
                        topic_id=topic.topic_id,
                    )
                )
        return results
