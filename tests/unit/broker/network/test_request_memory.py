"""queued.max.request.bytes: connections are muted while requests take all memory."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from broker.network.request_memory import Claim, RequestMemory, RequestMemoryStatistics
from broker.request import Pending, RequestContext
from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.fake_handlers import AsyncClient, Harness, running_server
from tests.support.wire_client import request_frame

HEARTBEAT = ApiKey.HEARTBEAT
LIMIT = 1_000_000


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(20):
            await main()

    trio.run(limited)


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


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(5):
        while not condition():
            await trio.sleep(0.001)


def answer(ctx: RequestContext, request: Any) -> Any:
    return HeartbeatResponse()


async def silent(client: AsyncClient) -> bool:
    with trio.move_on_after(0.05):
        await client.receive_frame()
        return False
    return True


def test_a_claimed_frame_mutes_others_until_it_was_handled() -> None:
    async def main() -> None:
        async with running_server({HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
            slow, other = await harness.connect(), await harness.connect()
            await other.call(HEARTBEAT, 3)
            frame = large_frame(LIMIT + 5)
            await slow.send(frame[:-1])
            await until(lambda: memory_of(harness).available <= 0)
            await other.send(beat(7))
            assert await silent(other)
            assert memory_of(harness).muted >= 1
            third = await harness.connect()
            await third.send(beat(8))
            assert await silent(third)
            await slow.send(frame[-1:])
            await slow.receive_frame()
            await other.response(HEARTBEAT, 3, 7)
            await third.response(HEARTBEAT, 3, 8)
            await until(lambda: memory_of(harness).used == 0)

    run(main)


def test_what_a_client_leaves_behind_comes_back() -> None:
    async def main() -> None:
        async with running_server({HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
            gone, other = await harness.connect(), await harness.connect()
            await gone.send(large_frame(2 * LIMIT)[:300_000])
            await until(lambda: memory_of(harness).available < 0)
            await other.send(beat(7))
            assert await silent(other)
            gone.close()
            await other.response(HEARTBEAT, 3, 7)
            await until(lambda: memory_of(harness).used == 0)

    run(main)


def test_parked_and_queued_requests() -> None:
    """A request in work holds its bytes; a parked one has given its buffer back."""
    gate = trio.Event()
    pending = Pending()

    async def wait() -> Any:
        await gate.wait()
        return HeartbeatResponse()

    def behave(ctx: RequestContext, request: Any) -> Any:
        return {1: lambda: pending, 2: wait}.get(ctx.correlation_id, HeartbeatResponse)()

    async def main() -> None:
        async with running_server({HEARTBEAT: behave}, queued_bytes=20_000) as harness:
            parked, working, other = [await harness.connect() for _ in range(3)]
            await parked.send(beat(1, 30_000))
            await working.send(beat(2, 25_000))
            await until(lambda: memory_of(harness).used > 25_000)
            assert memory_of(harness).used < 30_000
            await other.send(beat(3))
            assert await silent(other)
            gate.set()
            await other.response(HEARTBEAT, 3, 3)
            await working.response(HEARTBEAT, 3, 2)
            pending.complete(HeartbeatResponse())
            await parked.response(HEARTBEAT, 3, 1)
            await until(lambda: memory_of(harness).used == 0)

    run(main)


def test_many_clients_with_large_requests_all_get_through() -> None:
    peak = 0

    async def main() -> None:
        async with running_server({HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:

            async def client() -> None:
                nonlocal peak
                connection = await harness.connect()
                for _ in range(3):
                    frame = large_frame(400_000)
                    await connection.send(frame[:100_000])
                    await until(lambda: memory_of(harness).used > 0)
                    peak = max(peak, memory_of(harness).used)
                    await connection.send(frame[100_000:])
                    await connection.receive_frame()

            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(client)
            await until(lambda: memory_of(harness).used == 0)

    run(main)
    assert 0 < peak < LIMIT + 400_004 + 20 * 131_072


def test_a_muted_connection_does_not_hold_up_a_stop() -> None:
    async def main() -> None:
        async with running_server({HEARTBEAT: answer}, queued_bytes=LIMIT) as harness:
            slow, other = await harness.connect(), await harness.connect()
            await slow.send(large_frame(2 * LIMIT)[:100_000])
            await until(lambda: memory_of(harness).available < 0)
            await other.send(beat(7))
            await until(lambda: memory_of(harness).muted >= 1)
            with trio.fail_after(1):
                await harness.server.close(5)

    run(main)


def test_without_a_limit_nothing_is_counted() -> None:
    async def main() -> None:
        async with running_server({HEARTBEAT: answer}) as harness:
            client = await harness.connect()
            await client.call(HEARTBEAT, 3)
            assert harness.server.statistics().memory is None

    run(main)


def test_who_waits_is_woken_one_after_the_other() -> None:
    async def main() -> None:
        memory = RequestMemory(10)
        first = Claim(memory)
        first.hold(15)
        served: list[int] = []

        async def wait(number: int) -> None:
            await memory.wait_available()
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

    run(main)
