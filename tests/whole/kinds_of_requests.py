"""Requests of each kind that takes some time: functions that make them, by name."""

from collections.abc import Callable
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.heavy_batches import of_each_kind
from tests.support.produce_requests import one_batch
from tests.support.read_requests import one_fetch, one_lookup
from tests.support.topic_requests import creation

NOW_MS: Final = 1_700_000_000_000
BATCHES: Final = of_each_kind(NOW_MS)
TOPICS: Final = [f"n{number}" for number in range(20)]
Call = tuple[ApiKey, int, Any]


def produce(kind: str, acks: int = 1) -> Call:
    return ApiKey.PRODUCE, 9, one_batch("t", BATCHES[kind], acks=acks)


def fetch(version: int, *, offset: int = 0, min_bytes: int = 1) -> Call:
    request = one_fetch("t", offset, min_bytes=min_bytes, max_wait_ms=60_000, max_bytes=1 << 20)
    return ApiKey.FETCH, version, request


def join(timeout_ms: int = 10_000) -> Call:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=timeout_ms,
        rebalance_timeout_ms=timeout_ms,
        protocol_type="consumer",
        protocols=protocols,
    )
    return ApiKey.JOIN_GROUP, 3, request


def commit() -> Call:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    return ApiKey.OFFSET_COMMIT, 5, OffsetCommitRequest(group_id="alone", topics=topics)


def large_metadata() -> Call:
    topics = [MetadataRequestTopic(name=f"x{number}") for number in range(20_000)]
    return ApiKey.METADATA, 8, MetadataRequest(topics=topics, allow_auto_topic_creation=False)


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
    "offset of a time": lambda: (ApiKey.LIST_OFFSETS, 5, one_lookup("t", NOW_MS)),
    "join": join,
    "commit": commit,
    "create topics": lambda: (ApiKey.CREATE_TOPICS, 5, creation(*TOPICS, partitions=3)),
    "large metadata": large_metadata,
}

SETTINGS: Final = {
    "message.max.bytes": "2000000",
    "socket.request.max.bytes": "4000000",
    "queued.max.request.bytes": "4000000",
    "group.initial.rebalance.delay.ms": "3000",
    "num.io.threads": "2",
}
