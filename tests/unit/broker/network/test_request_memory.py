"""queued.max.request.bytes: connections are muted while requests take all memory."""

from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.request_memory import Claim, RequestMemory, RequestMemoryStatistics
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from storage.waits import Signal
from tests.support.driving import driver
from tests.support.fake_handlers import Harness, Parking, connected, running_server
from tests.support.networks import MemoryNet, Net, wait_until
from tests.support.wire_client import request_frame

HEARTBEAT = ApiKey.HEARTBEAT
LIMIT = 1_000_000


def beat(number: int, size: int = 10) -> bytes:
    request = HeartbeatRequest(group_id="g", member_id="m" * min(size, 32_000))
    return request_frame(HEARTBEAT, 3, request, correlation_id=number)


def large_frame(size: int) -> bytes:
    """A request that is followed by bytes it has no use for, which are read all the same."""
    frame = bytearray(beat(1))
    frame += bytes(size + 4 - len(frame))
    frame[:4] = size.to_bytes(4, "big")
    return bytes(frame)


def memory_of(harness: Harness) -> RequestMemoryStatistics:
    found = harness.server.statistics().memory
    assert found is not None
    return found


def answer(ctx: RequestContext, request: Any) -> Any:
    return HeartbeatResponse()


async def test_a_claimed_frame_mutes_others_until_it_was_handled(net: Net) -> None:
    async with running_server(net, {HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
        slow, other = await harness.connect(), await harness.connect()
        await other.call(HEARTBEAT, 3)
        frame = large_frame(LIMIT + 5)
        await slow.send(frame[:-1])
        await wait_until(lambda: memory_of(harness).available <= 0)
        await other.send(beat(7))
        await net.settle()
        assert other.has_nothing()
        assert memory_of(harness).muted >= 1
        third = await harness.connect()
        await third.send(beat(8))
        await net.settle()
        assert third.has_nothing()
        await slow.send(frame[-1:])
        await slow.receive_frame()
        await other.response(HEARTBEAT, 3, 7)
        await third.response(HEARTBEAT, 3, 8)
        await wait_until(lambda: memory_of(harness).used == 0)


async def test_what_a_client_leaves_behind_comes_back(net: Net) -> None:
    async with running_server(net, {HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
        gone, other = await harness.connect(), await harness.connect()
        await gone.send(large_frame(2 * LIMIT)[:300_000])
        await wait_until(lambda: memory_of(harness).available < 0)
        await other.send(beat(7))
        await net.settle()
        assert other.has_nothing()
        gone.close()
        await other.response(HEARTBEAT, 3, 7)
        await wait_until(lambda: memory_of(harness).used == 0)


async def test_parked_and_queued_requests(net: Net) -> None:
    """A request in work holds its bytes; a parked one has given its buffer back."""
    gate: Signal[None] = Signal()
    pending = Parking()

    async def wait() -> Any:
        await gate
        return HeartbeatResponse()

    def behave(ctx: RequestContext, request: Any) -> Any:
        return {1: lambda: pending, 2: wait}.get(ctx.correlation_id, HeartbeatResponse)()

    async with running_server(net, {HEARTBEAT: behave}, queued_bytes=20_000) as harness:
        parked, working, other = [await harness.connect() for _ in range(3)]
        await parked.send(beat(1, 30_000))
        await working.send(beat(2, 25_000))
        await wait_until(lambda: memory_of(harness).used > 25_000)
        assert memory_of(harness).used < 30_000
        await other.send(beat(3))
        await net.settle()
        assert other.has_nothing()
        gate.fire()
        await other.response(HEARTBEAT, 3, 3)
        await working.response(HEARTBEAT, 3, 2)
        pending.complete(HeartbeatResponse())
        await parked.response(HEARTBEAT, 3, 1)
        await wait_until(lambda: memory_of(harness).used == 0)


async def test_many_clients_with_large_requests_all_get_through(net: Net) -> None:
    peak = 0
    async with running_server(net, {HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:

        async def client() -> None:
            nonlocal peak
            connection = await harness.connect()
            for _ in range(3):
                frame = large_frame(400_000)
                await connection.send(frame[:100_000])
                await wait_until(lambda: memory_of(harness).used > 0)
                peak = max(peak, memory_of(harness).used)
                await connection.send(frame[100_000:])
                await connection.receive_frame()

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(client)
        await wait_until(lambda: memory_of(harness).used == 0)
    assert 0 < peak < LIMIT + 400_004 + 20 * 131_072


async def test_a_muted_connection_does_not_hold_up_a_stop(net: Net) -> None:
    async with running_server(net, {HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
        slow, other = await harness.connect(), await harness.connect()
        await slow.send(large_frame(2 * LIMIT)[:100_000])
        await wait_until(lambda: memory_of(harness).available < 0)
        await other.send(beat(7))
        await wait_until(lambda: memory_of(harness).muted >= 1)
        with trio.fail_after(4):
            await harness.server.close(5)


async def test_without_a_limit_nothing_is_counted(net: Net) -> None:
    async with connected(net, {HEARTBEAT: answer}) as (harness, client):
        await client.call(HEARTBEAT, 3)
        assert harness.server.statistics().memory is None


async def test_waiters_are_woken_one_after_the_other(pipes: MemoryNet) -> None:
    memory = RequestMemory(10)
    first = Claim(memory)
    first.hold(15)
    served: list[int] = []

    async def wait(number: int) -> None:
        await driver().run(memory.wait_available())
        memory.take(10)
        served.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
        await wait_all_tasks_blocked()
        assert (served, memory.statistics().muted) == ([], 3)
        first.release()
        await wait_all_tasks_blocked()
        assert len(served) == 1
        memory.give_back(10)
        await wait_all_tasks_blocked()
        assert len(served) == 2
        nursery.cancel_scope.cancel()
