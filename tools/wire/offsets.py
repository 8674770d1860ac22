"""ListOffsets for many partitions: one request to each broker that leads some of them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from protocol.errors import ErrorCode
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tools.log_ends import Place, place_name
from tools.wire.brokers import Brokers, Topics, leaders_of
from tools.wire.refusals import require_done

LATEST: Final = -1
EARLIEST: Final = -2

_GONE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
)


def list_offsets(
    cluster: Brokers,
    topics: Topics,
    places: Sequence[Place],
    moment: int = LATEST,
    *,
    read_committed: bool = False,
    gone_is_fine: bool = False,
) -> dict[Place, int]:
    """Return offsets at `moment`, in ms or `EARLIEST` or `LATEST`; -1 if there is no such record.

    With `read_committed`, the latest is the last stable offset. With `gone_is_fine`, partitions
    that were deleted meanwhile are left out. Raises CommandError.
    """
    found: dict[Place, int] = {}
    for leader, led in leaders_of(topics, places).items():
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=number, timestamp=moment)
                        for _, number in of_topic
                    ],
                )
                for name, of_topic in groupby(sorted(led), key=lambda place: place[0])
            ],
        )
        answer = cluster.broker(leader).call(request, ListOffsetsResponse, least=2)
        for topic in answer.topics:
            for partition in topic.partitions:
                place = (topic.name, partition.partition_index)
                if gone_is_fine and partition.error_code in _GONE:
                    continue
                require_done(partition.error_code, what=place_name(place))
                found[place] = partition.offset
    return found
