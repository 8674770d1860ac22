"""Clients of Fetch v0-3 and searches in time, through a whole broker."""

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.records.batch import iter_batches
from protocol.records.message_set import iter_legacy_records
from tests.support.memory_client import MemoryClient
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.plain import produced


async def messages(client: MemoryClient, version: int, offset: int, wait_ms: int) -> list[str]:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
    topics = [FetchTopic(topic="t", partitions=[asked])]
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=topics)
    answer = await client.call(ApiKey.FETCH, version, request)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    data = bytes(partition.records)
    return [
        (message.value or b"").decode()
        for at, _ in iter_batches(data)
        for message in iter_legacy_records(data, at)
    ]


@pytest.mark.parametrize("version", [0, 3])
def test_old_clients_read_what_is_there_and_wait_for_more(version: int) -> None:
    @whole_broker()
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        client = broker.client()
        await produced(client, "t-0", "a", "b")
        assert await messages(client, version, 1, 0) == ["b"]
        assert await messages(client, version, 2, 200) == []
        await produced(client, "t-0", "c")
        assert await messages(client, version, 2, 200) == ["c"]

    scenario()


@whole_broker()
async def test_a_time_within_a_batch_of_thousands_is_found(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    client = broker.client()
    await produced(client, "t-0", "a")
    await broker.clock.sleep(1)
    later = client.wall_ms()
    await produced(client, "t-0", *["b"] * 3000)
    asked = ListOffsetsPartition(partition_index=0, timestamp=later)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])]
    )
    answer = await client.call(ApiKey.LIST_OFFSETS, 7, request)
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.offset, partition.timestamp) == (0, 1, later)
