"""A request that is dropped in the middle of its work leaves nothing held (S-NET-1).

Clients send requests of each kind and go away some passes of the loop later: by the end of the
stream, by a reset, or because the broker stops. Afterwards all locks, places, bytes and workers are
free, and a batch that needs all of them is appended.
"""

from collections.abc import Callable
from typing import Final

import pytest
import trio

from broker.network.socket_server import LAST_REPLY_S
from broker.registry import APIS
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.filled_requests import filled
from tests.support.held import Held
from tests.support.largest_requests import arrays, largest
from tests.support.memory_client import MemoryClient
from tests.support.slow_workers import SlowWorkers
from tests.support.whole_broker import WholeBroker, run_whole_broker
from tests.whole.kinds_of_requests import BATCHES, KINDS, SETTINGS, Call, produce

PASSES: Final = (*range(12), *range(12, 60, 4))
"""Passes of the loop between a request and the end of its client; only parked ones take more."""

WAYS: Final[dict[str, Callable[[MemoryClient], None]]] = {
    "closes": MemoryClient.close,
    "resets": MemoryClient.die,
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


async def until_all_is_released(broker: WholeBroker, before: Held) -> None:
    """Wait until nothing more is held than before, some minutes of the broker's time at most."""
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
            await until_all_is_released(broker, before)
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
            await until_all_is_released(broker, before)
        await produces(broker)

    run_whole_broker(scenario, SlowWorkers(3), **SETTINGS)
