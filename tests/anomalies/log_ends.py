"""The question where the partitions of a workload end, as a request and its answer."""

from collections.abc import Mapping
from typing import Any, Final

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.anomalies.workload.clients import joined

VERSION: Final = 7
"""Of ListOffsets."""
_LATEST: Final = -1


def question(*, isolation: int, topics: Mapping[str, int]) -> ListOffsetsRequest:
    """The last offsets that a reader of this isolation may reach; `topics` are partition counts."""
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=_LATEST)
                    for number in range(count)
                ],
            )
            for topic, count in topics.items()
        ],
    )


def found_in(answer: Any) -> dict[str, int]:
    """Key to offset."""
    return {
        joined(topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
    }
