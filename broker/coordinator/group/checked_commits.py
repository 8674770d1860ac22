"""Which of the offsets that OffsetCommit and TxnOffsetCommit name may be committed.

Each partition is checked on its own: a partition that does not exist, and metadata longer than
`offset.metadata.max.bytes`, are refused at once; the rest goes to the group. Kafka counts that
length as `String.length` does, in UTF-16 code units (`OffsetMetadataManager.isMetadataInvalid`).
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from broker.cluster.image import Found
from broker.cluster.java_hash import java_length
from broker.coordinator.group.data.values import PartitionCommit
from protocol.errors import ErrorCode
from storage.waits import PAUSE

COMMITS_PER_BATCH: Final = 256
"""Offsets per batch when the request is large (`ctx.large`): two milliseconds of work. Any other
request is written as one batch."""


class AskedPartition(Protocol):
    """One partition of either request."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class PartitionResult(Protocol):
    """One partition of either response."""

    partition_index: int
    error_code: int


ResultT = TypeVar("ResultT", bound=PartitionResult)


class CheckedCommits(Generic[ResultT]):
    """The offsets of one request that may be committed, gathered topic by topic."""

    __slots__ = ("_large", "_make_result", "_max_metadata", "accepted", "commits", "too_long")

    def __init__(
        self, max_metadata: int, make_result: Callable[[], ResultT], *, large: bool
    ) -> None:
        """`large`: whether the request has very many partitions (`ctx.large`)."""
        self._max_metadata = max_metadata
        self._make_result = make_result
        self._large = large
        self.commits: list[PartitionCommit] = []
        self.accepted: list[ResultT] = []
        """The results of `commits` in the response; their error codes come from the group."""
        self.too_long: list[ResultT] = []
        """Results of existing partitions whose metadata is too long."""

    def batches(self) -> Sequence[tuple[list[PartitionCommit], list[ResultT]]]:
        """Return (commits, their results), one at least: all, or if large in several batches."""
        if not self._large:
            return ((self.commits, self.accepted),)
        return [
            (
                self.commits[start : start + COMMITS_PER_BATCH],
                self.accepted[start : start + COMMITS_PER_BATCH],
            )
            for start in range(0, len(self.commits) or 1, COMMITS_PER_BATCH)
        ]

    def check(self, partitions: Sequence[AskedPartition], topic: Found) -> list[ResultT]:
        """Return results for one topic's partitions, and add those without error to `commits`."""
        image, missing = topic
        make_result = self._make_result
        results: list[ResultT] = []
        for one in partitions:
            result = make_result()
            index = result.partition_index = one.partition_index
            metadata = one.committed_metadata
            results.append(result)
            if image is None:
                result.error_code = missing
            elif index not in image.partitions:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif metadata is not None and java_length(metadata) > self._max_metadata:
                result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                self.too_long.append(result)
            else:
                self.accepted.append(result)
                self.commits.append(
                    PartitionCommit(
                        topic=image.name,
                        partition=index,
                        offset=one.committed_offset,
                        leader_epoch=one.committed_leader_epoch,
                        metadata=metadata or "",
                        topic_id=image.topic_id,
                    )
                )
        return results

    async def check_in_turns(
        self, partitions: Sequence[AskedPartition], topic: Found
    ) -> list[ResultT]:
        """`check`, in turns if the request is large."""
        if not self._large:
            return self.check(partitions, topic)
        results: list[ResultT] = []
        for one in partitions:
            results += self.check((one,), topic)
            await PAUSE
        await PAUSE  # a topic may have no partitions
        return results
