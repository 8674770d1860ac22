"""A request that is dropped in the middle of its work leaves nothing held (S-NET-1).

Clients send requests of each kind and go away some passes of the loop later: by the end of the
stream, by a reset, or because the broker stops. Afterwards all locks, places, bytes and workers are
free, and a batch that needs all of them is appended.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
import trio

from broker.network.socket_server import LAST_REPLY_S
from broker.registry import APIS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
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
from tests.support.filled_requests import filled
from tests.support.heavy_batches import of_each_kind
from tests.support.held import Held
from tests.support.largest_requests import arrays, largest
from tests.support.memory_client import MemoryClient
from tests.support.produce_requests import one_batch
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker

NOW_MS: Final = 1_700_000_000_000
BATCHES: Final = of_each_kind(NOW_MS)
PASSES: Final = (*range(12), *range(12, 60, 4))
"""Passes of the loop between a request and the end of its client. Only parked ones take more."""

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

WAYS: Final[dict[str, Callable[[MemoryClient], None]]] = {
    "closes": MemoryClient.close,
    "resets": MemoryClient.die,
}

SETTINGS: Final = {
    "message.max.bytes": "2000000",
    "socket.request.max.bytes": "4000000",
    "queued.max.request.bytes": "4000000",
    "group.initial.rebalance.delay.ms": "3000",
    "num.io.threads": "2",
}


async def drop(
    broker: WholeBroker, call: Call, passes: int, leave: Callable[[MemoryClient], None]
) -> None:
    """Send a request, and leave some passes later without having read a reply."""
    client = broker.client()
    await client.send_only(*call)
    for _ in range(passes):
        await trio.lowlevel.checkpoint()
    leave(client)


async def all_is_back(broker: WholeBroker, before: Held) -> None:
    """Wait, some minutes of the broker's time at most, until nothing more is held than before."""
    for _ in range(3_000):
        if not before.changes():
            return
        await broker.clock.sleep(0.1)
    raise AssertionError("\n".join(before.changes()))


async def produces(broker: WholeBroker) -> None:
    """Append a batch of each kind."""
    client = broker.client()
    for kind in BATCHES:
        answer = await client.call(*produce(kind))
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    client.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_whose_client_goes_leaves_nothing_held(kind: str, way: str) -> None:
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        await produces(broker)
        before = Held()
        call = KINDS[kind]()
        for passes in PASSES:
            await drop(broker, call, passes, WAYS[way])
            await all_is_back(broker, before)
        await produces(broker)

    run_whole_broker(scenario, SlowWorkers(1), **SETTINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_in_the_middle_of_a_request_leaves_nothing_held(kind: str) -> None:
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        for passes in PASSES[::3]:
            await produces(broker)
            before = Held()
            for _ in range(3):
                await broker.client().send_only(*KINDS[kind]())
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            began = broker.clock.monotonic()
            assert await broker.stop()
            assert broker.clock.monotonic() - began <= LAST_REPLY_S + 0.1
            assert not before.changes()
            await broker.start()

    run_whole_broker(scenario, SlowWorkers(2), **SETTINGS)


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_no_request_leaves_anything_held(key: ApiKey) -> None:
    """Each API, with two and with 3,000 elements in each of its arrays."""
    version = APIS[key].versions[1]
    requests = [filled(key, version)]
    requests += [largest(key, version, path, 3_000) for path in arrays(key, version)]

    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        before = Held()
        for request in requests:
            for passes in (0, 1, 2, 5, 30):
                for leave in WAYS.values():
                    await drop(broker, (key, version, request), passes, leave)
            await all_is_back(broker, before)
        await produces(broker)

    run_whole_broker(scenario, SlowWorkers(3), **SETTINGS)
