"""Requests of each kind that takes some time: by name, what makes one."""

from collections.abc import Callable
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.heavy_batches import of_each_kind
from tests.support.produce_requests import one_batch

NOW_MS: Final = 1_700_000_000_000
BATCHES: Final = of_each_kind(NOW_MS)
Call = tuple[ApiKey, int, Any]


def produce(kind: str, acks: int = 1) -> Call:
    return ApiKey.PRODUCE, 9, one_batch("t", BATCHES[kind], acks=acks)


def fetch(version: int, *, offset: int = 0, min_bytes: int = 1) -> Call:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[partition])]
    limits = {"max_wait_ms": 60_000, "min_bytes": min_bytes, "max_bytes": 1 << 20}
    return ApiKey.FETCH, version, FetchRequest(topics=topics, **limits)


def offset_of_a_time() -> Call:
    partition = ListOffsetsPartition(partition_index=0, timestamp=NOW_MS)
    topics = [ListOffsetsTopic(name="t", partitions=[partition])]
    return ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=topics)


def join() -> Call:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    return ApiKey.JOIN_GROUP, 3, request


def commit() -> Call:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    return ApiKey.OFFSET_COMMIT, 5, OffsetCommitRequest(group_id="alone", topics=topics)


def create_topics() -> Call:
    topics = [
        CreatableTopic(name=f"n{number}", num_partitions=3, replication_factor=1)
        for number in range(20)
    ]
    return ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=30_000)


def large_metadata() -> Call:
    topics = [MetadataRequestTopic(name=f"x{number}") for number in range(20_000)]
    return (
        ApiKey.METADATA,
        8,
        MetadataRequest(topics=topics, allow_auto_topic_creation=False),
    )


KINDS: Final[dict[str, Callable[[], Call]]] = {
    **{
        f"produce {kind}, acks={acks}": lambda kind=kind, acks=acks: produce(kind, acks)
        for kind in BATCHES
        for acks in (0, 1, -1)
    },
    "fetch": lambda: fetch(11),
    "fetch at the end": lambda: fetch(11, offset=1_000_000_000),
    "parked fetch": lambda: fetch(11, min_bytes=1 << 30),
    "fetch of format 1": lambda: fetch(2),
    "fetch of format 0": lambda: fetch(1),
    "offset of a time": offset_of_a_time,
    "join": join,
    "commit": commit,
    "create topics": create_topics,
    "large metadata": large_metadata,
}

SETTINGS: Final = {
    "message.max.bytes": "2000000",
    "socket.request.max.bytes": "4000000",
    "queued.max.request.bytes": "4000000",
    "group.initial.rebalance.delay.ms": "3000",
    "num.io.threads": "2",
}
