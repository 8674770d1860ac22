"""The broker finishes a change of topics whose client has gone meanwhile."""

from contextlib import suppress
from typing import Any

import pytest
import trio

from protocol.api_keys import ApiKey
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.memory_client import MemoryClient
from tests.support.topic_requests import creation, growth
from tests.support.whole_broker import WholeBroker, whole_broker

NAMES = [f"t{number}" for number in range(300)]

CHANGES = {
    ApiKey.CREATE_TOPICS: creation(*NAMES, partitions=2),
    ApiKey.CREATE_PARTITIONS: growth("old", 3_000),
    ApiKey.METADATA: MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in NAMES]),
}


@pytest.mark.parametrize("key", CHANGES, ids=lambda key: key.name)
def test_a_change_is_finished_without_its_client(key: ApiKey) -> None:
    @whole_broker(num__partitions="2")
    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("old")
        image, logs = broker.server.components.image, broker.server.components.log_manager

        def made() -> int:
            return sum(1 for _ in logs.all_logs())

        client = broker.client()
        async with broker.together() as nursery:
            nursery.start_soon(ask, client, key, CHANGES[key])
            while made() == 1:
                await trio.lowlevel.checkpoint()
            assert made() < (3_000 if key is ApiKey.CREATE_PARTITIONS else 600)
            client.die()
        await broker.clock.sleep(10)
        assert made() == image.partition_count() >= 600

    scenario()


async def ask(client: MemoryClient, key: ApiKey, request: Any) -> None:
    with suppress(OSError):
        await client.call(key, 3 if key is ApiKey.CREATE_PARTITIONS else 5, request)
