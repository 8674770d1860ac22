"""The ends of a workload's partitions: the request for them, and its answer."""

from collections.abc import Mapping
from typing import Any, Final

from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.anomalies.workload.clients import joined

VERSION: Final = 7
"""The version of ListOffsets."""
_LATEST: Final = -1


def question(*, isolation: int, topics: Mapping[str, int]) -> ListOffsetsRequest:
    """Ask for the last offsets that this isolation level shows; `topics` has partition counts."""
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
    """Return the offset by key."""
    return {
        joined(topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
    }
