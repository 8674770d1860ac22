"""Connections whose client has a quota of bytes, with fake handlers, on both networks."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from broker.network.activity import State
from broker.quotas.client_quota import ClientQuota
from broker.quotas.entity import DEFAULT, Entity
from broker.quotas.rate import Windows
from broker.request import RequestContext
from protocol.messages.produce import ProduceResponse, TopicProduceResponse
from storage.waits import Signal, call
from tests.support.connection_requests import PRODUCE, produce_frame
from tests.support.fake_handlers import Harness, Parking, running_server
from tests.support.networks import Net, wait_until

WINDOWS = Windows(samples=2, window_ms=400)
PAYLOAD = b"x" * 10_000
SIZE = len(produce_frame(PAYLOAD)) - 4
FIRST_MS = 200
"""The throttle time of the first request: what it has too much of, beyond a window."""
RATE = SIZE * 1000 / (400 + FIRST_MS)


def limit(harness: Harness) -> None:
    harness.requests.quotas.change(Entity(client_id=DEFAULT), "producer_byte_rate", RATE)


def throttled(harness: Harness) -> int:
    charging = harness.requests.quotas.charging
    return 0 if charging is None else charging.produce.throttled


def states(harness: Harness) -> list[State]:
    return [connection.state for connection in harness.server._connections]


def plain(ctx: RequestContext, request: Any) -> Any:
    return ProduceResponse()


async def by_worker(ctx: RequestContext, request: Any) -> Any:
    await call(time.sleep, 0.001)
    return ProduceResponse()


@pytest.mark.parametrize("work", [plain, by_worker])
async def test_s_qta_3_a_reply_leaves_at_once_and_the_next_one_after_its_throttle_time(
    net: Net, work: Any
) -> None:
    async with running_server(net, {PRODUCE: work}, windows=WINDOWS) as harness:
        limit(harness)
        client = await harness.connect()
        began = net.clock.monotonic()
        await client.send(produce_frame(PAYLOAD, 1) + produce_frame(PAYLOAD, 2))
        first = await client.response(PRODUCE, 9, 1)
        assert first.throttle_time_ms == pytest.approx(FIRST_MS, abs=2)
        assert net.clock.monotonic() < began + FIRST_MS / 1000
        await wait_until(lambda: throttled(harness) == 1)
        assert states(harness) == [State.THROTTLED]
        assert client.has_nothing()
        second = await client.response(PRODUCE, 9, 2)
        assert net.clock.monotonic() >= began + (FIRST_MS - 2) / 1000
        # Twice as much, over a window and the time since the first.
        assert 0 < second.throttle_time_ms <= FIRST_MS + SIZE * 1000 / RATE


async def test_s_qta_3_a_parked_request_is_throttled_when_it_is_answered(net: Net) -> None:
    pending = Parking()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else plain(ctx, request)

    async with running_server(net, {PRODUCE: park_first}, windows=WINDOWS) as harness:
        limit(harness)
        client = await harness.connect()
        await client.send(produce_frame(PAYLOAD, 1) + produce_frame(PAYLOAD, 2))
        await net.settle()
        assert throttled(harness) == 0
        pending.complete(ProduceResponse())
        answered = net.clock.monotonic()
        first = await client.response(PRODUCE, 9, 1)
        assert first.throttle_time_ms == pytest.approx(FIRST_MS, abs=2)
        await client.response(PRODUCE, 9, 2)
        assert net.clock.monotonic() >= answered + (FIRST_MS - 2) / 1000


async def test_s_qta_3_a_request_without_an_answer_holds_back_the_next_one(net: Net) -> None:
    def none_first(ctx: RequestContext, request: Any) -> Any:
        return None if ctx.correlation_id == 1 else plain(ctx, request)

    async with running_server(net, {PRODUCE: none_first}, windows=WINDOWS) as harness:
        limit(harness)
        client = await harness.connect()
        began = net.clock.monotonic()
        await client.send(produce_frame(PAYLOAD, 1) + produce_frame(PAYLOAD, 2))
        await client.response(PRODUCE, 9, 2)
        assert net.clock.monotonic() >= began + (FIRST_MS - 2) / 1000


async def test_another_connection_is_not_held_back(net: Net) -> None:
    async with running_server(net, {PRODUCE: plain}, windows=WINDOWS) as harness:
        limit(harness)
        client, other = await harness.connect(), await harness.connect()
        await client.send(produce_frame(PAYLOAD))
        await client.response(PRODUCE, 9)
        await wait_until(lambda: throttled(harness) == 1)
        began = net.clock.monotonic()
        await other.send(produce_frame(b"x"))
        await other.response(PRODUCE, 9)
        assert net.clock.monotonic() < began + FIRST_MS / 2000


async def test_what_sending_takes_is_charged_too(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[tuple[str, str, float]] = []

    def note(quota: Any, user: str, client_id: str, value: float, now_ms: int) -> None:
        spent.append((user, client_id, value))

    monkeypatch.setattr(ClientQuota, "spend_unchecked", note)
    async with running_server(net, {PRODUCE: plain}) as harness:
        harness.requests.quotas.change(Entity(user=DEFAULT), "request_percentage", 1e9)
        client = await harness.connect()
        for number in range(3):
            await client.send(produce_frame(PAYLOAD, number))
            await client.response(PRODUCE, 9, number)
        await wait_until(lambda: len(spent) == 3)
        for user, client_id, percent in spent:
            assert (user, client_id) == ("ANONYMOUS", "wire-client")
            assert percent >= 0
            assert net.in_memory or 0 < percent < 100


async def test_a_connection_that_ends_with_its_request_waits_for_nothing(net: Net) -> None:
    def last(ctx: RequestContext, request: Any) -> Any:
        ctx.close_connection = True
        return ProduceResponse()

    async with running_server(net, {PRODUCE: last}, windows=WINDOWS) as harness:
        limit(harness)
        client = await harness.connect()
        began = net.clock.monotonic()
        await client.send(produce_frame(PAYLOAD))
        assert (await client.response(PRODUCE, 9)).throttle_time_ms == 0
        assert await client.closed_by_peer()
        assert net.clock.monotonic() < began + FIRST_MS / 1000


async def stop_takes(net: Net, harness: Harness, during: Callable[[], Awaitable[None]]) -> float:
    """The seconds of a stop, during which something else is done once it has begun."""
    began = net.clock.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(harness.server.close, 6)
        await net.settle()
        await during()
    return net.clock.monotonic() - began


async def test_a_stop_does_not_wait_for_the_throttle_of_a_request_that_it_has_let_finish(
    net: Net,
) -> None:
    async def at_work(ctx: RequestContext, request: Any) -> Any:
        await is_done
        return ProduceResponse()

    is_done = Signal[None]()
    async with running_server(net, {PRODUCE: at_work}, windows=WINDOWS) as harness:
        harness.requests.quotas.change(Entity(client_id=DEFAULT), "producer_byte_rate", 1)
        client = await harness.connect()
        await client.send(produce_frame(PAYLOAD, 1) + produce_frame(PAYLOAD, 2))
        await net.settle()

        async def finish() -> None:
            is_done.fire()
            assert (await client.response(PRODUCE, 9, 1)).throttle_time_ms > 6_000
            assert await client.closed_by_peer()

        assert await stop_takes(net, harness, finish) < 3
        assert throttled(harness) == 0


async def test_a_stop_does_not_wait_for_the_throttle_behind_a_reply_that_is_taken_slowly(
    stream_net: Net,
) -> None:
    net = stream_net
    topics = [TopicProduceResponse(name="t" * 30_000)] * 500

    def plain_and_long(ctx: RequestContext, request: Any) -> Any:
        return ProduceResponse(responses=topics)

    async with running_server(net, {PRODUCE: plain_and_long}, windows=WINDOWS) as harness:
        harness.requests.quotas.change(Entity(client_id=DEFAULT), "producer_byte_rate", 1)
        client = await harness.connect()
        await client.send(produce_frame(PAYLOAD, 1))
        await wait_until(lambda: states(harness) == [State.SENDING])

        async def take() -> None:
            assert (await client.response(PRODUCE, 9, 1)).throttle_time_ms > 6_000
            assert await client.closed_by_peer()

        assert await stop_takes(net, harness, take) < 3
        assert throttled(harness) == 0


async def test_a_client_that_leaves_while_it_is_throttled_is_let_go_of(net: Net) -> None:
    async with running_server(net, {PRODUCE: plain}, windows=WINDOWS) as harness:
        limit(harness)
        client = await harness.connect()
        await client.send(produce_frame(PAYLOAD))
        await client.response(PRODUCE, 9)
        await wait_until(lambda: throttled(harness) == 1)
        client.close()
        await wait_until(lambda: states(harness) == [])
        assert throttled(harness) == 0


async def test_without_quotas_nobody_is_throttled(net: Net) -> None:
    async with running_server(net, {PRODUCE: plain}, windows=WINDOWS) as harness:
        limit(harness)
        quotas = harness.requests.quotas
        quotas.change(Entity(client_id=DEFAULT), "producer_byte_rate", None)
        client = await harness.connect()
        for number in range(3):
            await client.send(produce_frame(PAYLOAD, number))
            assert (await client.response(PRODUCE, 9, number)).throttle_time_ms == 0
