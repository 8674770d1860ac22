"""Requests of a client that reads one partition, whose topic they name."""

from typing import Any

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)


def one_fetch(
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    size: int = 1 << 20,
    min_bytes: int = 1,
    max_wait_ms: int = 0,
    **fields: Any,
) -> FetchRequest:
    """A Fetch of at most `size` bytes from the partition; `fields` are those of the request."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics, **fields)


def one_lookup(topic: str, timestamp: int) -> ListOffsetsRequest:
    """A ListOffsets for a time in partition 0, or for one of the special times below 0."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
    return ListOffsetsRequest(replica_id=-1, topics=topics)
