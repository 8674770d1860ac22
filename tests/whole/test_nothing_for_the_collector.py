"""What clients leave behind is free at once, and does not wait for the collector of cycles.

The collector comes once in fifty million objects, because it stops the loop. A client that connects
again and again, or makes and deletes topics, would fill the memory with cycles until then.
"""

import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.registry import APIS
from broker.world.transport import Address
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_topics import DeleteTopicsRequest
from tests.support.filled_requests import filled
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker
from tests.whole.kinds_of_requests import KINDS, SETTINGS

TIMES = 3
PRODUCT = {"broker", "config", "protocol", "storage", "tls"}
OF_TESTS = (Address,)
"""Held by the cycles of streams in memory."""


@contextmanager
def saving_garbage() -> Iterator[list[Any]]:
    """Return what only a collection would free; filled at the end."""
    garbage: list[Any] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield garbage
        gc.collect()
        garbage.extend(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def leaves_nothing(once: Callable[[], Awaitable[None]]) -> None:
    """Do it a few times; raise AssertionError for objects of the product in cycles."""
    await once()  # what is kept from the first time on is there
    with saving_garbage() as garbage:
        for _ in range(TIMES):
            await once()
    of_product = [found for found in garbage if type(found).__module__.split(".")[0] in PRODUCT]
    assert not Counter(type(found) for found in of_product if not isinstance(found, OF_TESTS))


def of_a_request(key: ApiKey, version: int, request: Any) -> None:
    """One client for each request, which leaves before the answer or has waited for it."""

    async def scenario(broker: WholeBroker) -> None:
        async def once() -> None:
            for waits_s in (0, 0, 60):
                client = broker.client()
                await client.send_only(key, version, request)
                await broker.clock.sleep(waits_s)
                client.close()
                await broker.clock.sleep(60)

        await broker.create_topic("t")
        await leaves_nothing(once)

    run_whole_broker(scenario, SlowWorkers(1), **SETTINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_leaves_nothing(kind: str) -> None:
    of_a_request(*KINDS[kind]())


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_no_request_leaves_anything(key: ApiKey) -> None:
    version = APIS[key].versions[1]
    of_a_request(key, version, filled(key, version))


def test_a_deleted_topic_leaves_nothing() -> None:
    async def scenario(broker: WholeBroker) -> None:
        async def once() -> None:
            await broker.create_topic("t", 3)
            client = broker.client()
            produced = await client.call(*KINDS["produce at once, acks=1"]())
            assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000)
            answer = await client.call(ApiKey.DELETE_TOPICS, 4, request)
            assert answer.responses[0].error_code == ErrorCode.NONE
            client.close()
            await broker.clock.sleep(120)

        await leaves_nothing(once)

    run_whole_broker(scenario, SlowWorkers(1), **SETTINGS)
