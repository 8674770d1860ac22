"""Asks brokers for the log ends of their replicas, whether they lead or not."""

from collections.abc import Iterable, Mapping
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tools.errors import CommandError
from tools.log_ends import Place
from tools.wire.brokers import Brokers

DEBUGGING: Final = -2
"""The replica id of one that only looks: a follower answers it too, with its end of the log
(`ListOffsetsRequest.DEBUGGING_REPLICA_ID`)."""
_LATEST: Final = -1


def replica_ends(
    cluster: Brokers, wanted: Mapping[int, Iterable[Place]]
) -> dict[tuple[int, Place], int]:
    """Return ends by broker and place; without those that a broker does not tell."""
    found: dict[tuple[int, Place], int] = {}
    for broker, places in wanted.items():
        try:
            link = cluster.broker(broker)
            answer = link.call(_question(places), ListOffsetsResponse, least=1)
        except CommandError:
            continue  # Another part of the report names brokers that do not answer.
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    place = (topic.name, partition.partition_index)
                    found[broker, place] = partition.offset
    return found


def _question(places: Iterable[Place]) -> ListOffsetsRequest:
    numbers: dict[str, list[int]] = {}
    for topic, number in places:
        numbers.setdefault(topic, []).append(number)
    return ListOffsetsRequest(
        replica_id=DEBUGGING,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each, timestamp=_LATEST) for each in some
                ],
            )
            for topic, some in numbers.items()
        ],
    )
