"""Replies that come later: by workers, made aside, parked; and a client that goes first.

Connections with fake handlers, on both networks.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest
import trio

from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.messages.registry import SPECS
from storage.waits import PAUSE, Call, Signal, Work, call, compute
from tests.support.connection_requests import HEARTBEAT, echo, heartbeat
from tests.support.fake_handlers import Parking, connected, running_server
from tests.support.networks import Net, wait_until
from tests.support.wire_client import request_frame

LIST_OFFSETS, LEAVE_GROUP = ApiKey.LIST_OFFSETS, ApiKey.LEAVE_GROUP


async def test_s_net_1_a_parked_request_holds_back_the_replies_behind_it(net: Net) -> None:
    pending = Parking()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async with connected(net, {HEARTBEAT: park_first}) as (harness, client):
        await client.send(heartbeat(0) + heartbeat(1) + heartbeat(2, 5))
        await client.response(HEARTBEAT, 4, 0)
        await net.settle()
        assert client.has_nothing()
        await trio.sleep(0.05)
        assert harness.requests.statistics().requests["Heartbeat"].requests == 2
        assert pending.complete(HeartbeatResponse(throttle_time_ms=3))
        assert not pending.complete(HeartbeatResponse(throttle_time_ms=4))
        assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 3
        assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5
        assert harness.requests.statistics().requests["Heartbeat"].phases["remote"].total_s > 0.04


async def test_work_that_pauses_and_is_done_within_its_turn_is_answered_at_once(net: Net) -> None:
    async def work(ctx: RequestContext, request: Any) -> Any:
        for _ in range(ctx.correlation_id):
            await PAUSE
        return echo(ctx, request)

    async with connected(net, {HEARTBEAT: work, LEAVE_GROUP: work}) as (harness, client):
        await client.send(heartbeat(0, 10) + heartbeat(1, 11) + heartbeat(3, 13))
        for pauses in (0, 1, 3):
            response = await client.response(HEARTBEAT, 4, pauses)
            assert response.throttle_time_ms == 10 + pauses
        times = harness.requests.statistics().requests["Heartbeat"]
        assert (times.errors, times.phases["remote"].total_s) == (0, 0)


async def test_work_is_gone_on_with_by_a_worker_and_may_be_parked_then(net: Net) -> None:
    pendings: list[Parking] = []

    async def work(ctx: RequestContext, request: Any) -> Any:
        await call(time.sleep, 0.01)
        if ctx.correlation_id == 2:
            pendings.append(Parking())
            return await pendings[0].reply(ctx)
        return echo(ctx, request)

    async with connected(net, {HEARTBEAT: work}) as (_, client):
        await client.send(heartbeat(1, 11) + heartbeat(2, 12))
        assert (await client.response(HEARTBEAT, 4, 1)).throttle_time_ms == 11
        await wait_until(lambda: bool(pendings))
        pendings[0].complete(HeartbeatResponse(throttle_time_ms=1))
        assert (await client.response(HEARTBEAT, 4, 2)).throttle_time_ms == 1


async def for_a_worker() -> None:
    await call(time.sleep, 0.001)


async def when_woken() -> None:
    signal: Signal[None] = Signal()
    trio.lowlevel.current_trio_token().run_sync_soon(signal.fire)
    await signal.parked()


async def nothing() -> None:
    pass


@pytest.mark.parametrize("before", [nothing, for_a_worker, when_woken])
async def test_what_took_long_holds_no_worker_wherever_it_begins(
    net: Net, monkeypatch: pytest.MonkeyPatch, before: Callable[[], Work[None]]
) -> None:
    """The first step calls a child process, or a worker does, or a request that was parked."""
    gates: list[trio.Event] = []

    async def ask_child(work: Any, *values: Any) -> Any:
        gates.append(trio.Event())
        await gates[-1].wait()
        return work(*values)

    async def work(ctx: RequestContext, request: Any) -> Any:
        if ctx.correlation_id != 9:
            await before()
            assert await compute(int, "7") == 7
        return echo(ctx, request)

    async with running_server(net, {HEARTBEAT: work}, workers=1) as harness:
        monkeypatch.setattr(net.workers, "in_process", ask_child)
        clients = [await harness.connect() for _ in range(4)]
        for number, client in enumerate(clients):
            await client.send(heartbeat(number, number) + heartbeat(9, 7))
        await wait_until(lambda: len(gates) == 4)
        await trio.sleep(0.02)
        assert harness.requests.pool.statistics().busy == 0
        assert harness.server._loop.elsewhere == 4
        for gate in gates:
            gate.set()
        for number, client in enumerate(clients):
            response = await client.response(HEARTBEAT, 4, number)
            assert response.throttle_time_ms == number
            await client.response(HEARTBEAT, 4, 9)
        times = harness.requests.statistics().requests["Heartbeat"]
        assert times.phases["remote"].total_s > 0.04
        assert harness.server._loop.elsewhere == 0


@pytest.mark.parametrize(("key", "ends"), [(LIST_OFFSETS, True), (LEAVE_GROUP, False)])
async def test_long_work_that_changes_nothing_ends_with_its_client(
    net: Net, key: ApiKey, ends: bool
) -> None:
    """Work that changes something is finished."""
    begun: list[bool] = []
    ended: list[bool] = []
    go: Signal[None] = Signal()

    async def work(ctx: RequestContext, request: Any) -> Any:
        try:
            await compute(int)
            begun.append(True)
            await go
        finally:
            ended.append(go.fired)

    async with connected(net, {key: work}) as (_, client):
        await client.send(request_frame(key, SPECS[key].max_version))
        await wait_until(lambda: bool(begun))
        await net.settle()
        net.reset(client.stream)
        if not ends:
            await net.settle()
            await trio.sleep(0.02)
            go.fire()
        await wait_until(lambda: ended == [not ends])


@pytest.mark.parametrize("place", [call, compute])
async def test_what_work_raises_later_is_answered(
    net: Net, place: Callable[..., Call[Any]]
) -> None:
    async def work(ctx: RequestContext, request: Any) -> Any:
        await place(int)
        raise KafkaError(ErrorCode.NOT_COORDINATOR) if ctx.correlation_id else ValueError("bug")

    async with connected(net, {HEARTBEAT: work}) as (_, client):
        await client.send(heartbeat(0) + heartbeat(1))
        response = await client.response(HEARTBEAT, 4, 0)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        response = await client.response(HEARTBEAT, 4, 1)
        assert response.error_code == ErrorCode.NOT_COORDINATOR


async def test_work_beyond_workers_and_queue_waits_and_is_finished(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = 0
    most = 0

    async def slow_thread(work: Any, *values: Any, limiter: Any = None) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(0.01)
        running -= 1
        return work(*values)

    async def work(ctx: RequestContext, request: Any) -> Any:
        await call(int)
        return echo(ctx, request)

    async with running_server(net, {HEARTBEAT: work}, workers=2) as harness:
        monkeypatch.setattr(net.workers, "in_thread", slow_thread)
        clients = [await harness.connect() for _ in range(10)]
        for number, client in enumerate(clients):
            await client.send(heartbeat(number, number))
        for number, client in enumerate(clients):
            response = await client.response(HEARTBEAT, 4, number)
            assert response.throttle_time_ms == number
        assert most == 2


async def test_a_parked_request_notices_that_its_client_has_reset_the_connection(net: Net) -> None:
    pending = Parking()
    async with connected(net, {HEARTBEAT: lambda c, r: pending}) as (harness, client):
        await client.send(heartbeat(1))
        await wait_until(lambda: "Heartbeat" in harness.requests.statistics().requests)
        net.reset(client.stream)
        await wait_until(lambda: pending.abandoned)
        assert not pending.done


async def test_a_client_that_sends_no_more_gets_every_reply(net: Net) -> None:
    """One is parked, and behind it are others: with a worker, aside, and at once."""
    pending = Parking()

    async def later(ctx: RequestContext, request: Any) -> Any:
        await (call(int) if ctx.correlation_id == 2 else compute(int))
        return echo(ctx, request)

    def behave(ctx: RequestContext, request: Any) -> Any:
        if ctx.correlation_id == 1:
            return pending
        return later(ctx, request) if ctx.correlation_id < 4 else echo(ctx, request)

    async with connected(net, {HEARTBEAT: behave}) as (harness, client):
        await client.send(b"".join(heartbeat(number, number) for number in range(1, 6)))
        net.send_eof(client.stream)
        await wait_until(lambda: "Heartbeat" in harness.requests.statistics().requests)
        await net.settle()
        assert not pending.abandoned
        pending.complete(HeartbeatResponse(throttle_time_ms=1))
        for number in range(1, 6):
            assert (await client.response(HEARTBEAT, 4, number)).throttle_time_ms == number
        assert await client.closed_by_peer()


@pytest.mark.parametrize("ahead", [b"", heartbeat(2)])
async def test_a_client_that_closed_while_its_request_is_parked_is_closed_by_the_sweeper(
    net: Net, ahead: bytes
) -> None:
    pending = Parking()
    async with connected(net, {HEARTBEAT: lambda c, r: pending}, max_idle_s=0.5) as (
        harness,
        client,
    ):
        await client.send(heartbeat(1))
        await wait_until(lambda: "Heartbeat" in harness.requests.statistics().requests)
        await client.send(ahead)
        await net.settle()
        assert not pending.abandoned
        client.close()
        await wait_until(lambda: pending.abandoned)
        assert harness.server.statistics().idle_closed == 1


async def test_bytes_sent_ahead_of_a_parked_reply_are_not_lost(net: Net) -> None:
    pending = Parking()

    def park_first(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 1 else echo(ctx, request)

    async with connected(net, {HEARTBEAT: park_first}) as (_, client):
        ahead = b"".join(heartbeat(number, number) for number in range(2, 500))
        await client.send(heartbeat(1) + ahead[:1001])
        await net.settle()
        await client.send(ahead[1001:])
        await net.settle()
        pending.complete(HeartbeatResponse())
        for number in range(1, 500):
            await client.response(HEARTBEAT, 4, number)
