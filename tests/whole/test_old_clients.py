"""Clients of Fetch v0-3 and lookups by time, through a whole broker."""

import pytest

from protocol.api_keys import ApiKey
from protocol.records.batch import iter_batches
from protocol.records.message_set import iter_legacy_records
from tests.support.memory_client import MemoryClient
from tests.support.read_requests import one_fetch, one_lookup
from tests.support.whole_broker import WholeBroker, whole_broker
from tests.whole.plain import produced


async def messages(client: MemoryClient, version: int, offset: int, wait_ms: int) -> list[str]:
    request = one_fetch("t", offset, size=10_000, max_wait_ms=wait_ms)
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
@whole_broker()
async def test_old_clients_read_what_is_there_and_wait_for_more(
    broker: WholeBroker, version: int
) -> None:
    await broker.create_topic("t")
    client = broker.client()
    await produced(client, "t-0", "a", "b")
    assert await messages(client, version, 1, 0) == ["b"]
    assert await messages(client, version, 2, 200) == []
    await produced(client, "t-0", "c")
    assert await messages(client, version, 2, 200) == ["c"]


@whole_broker()
async def test_a_time_within_a_batch_of_thousands_is_found(broker: WholeBroker) -> None:
    await broker.create_topic("t")
    client = broker.client()
    await produced(client, "t-0", "a")
    await broker.clock.sleep(1)
    later = client.wall_ms()
    await produced(client, "t-0", *["b"] * 3000)
    answer = await client.call(ApiKey.LIST_OFFSETS, 7, one_lookup("t", later))
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.offset, partition.timestamp) == (0, 1, later)
