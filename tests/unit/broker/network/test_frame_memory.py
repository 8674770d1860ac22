"""incomplete.request.max.bytes: what unfinished requests hold is bounded, and nobody is stuck."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import trio
import trio.testing

from broker.network.frame_memory import (
    LANES,
    LONGEST_S,
    SMALL_FRAME,
    STALLED_S,
    WINDOW,
    FrameHold,
    FrameMemory,
    FrameMemoryStatistics,
)
from broker.request import Pending, RequestContext
from broker.world.virtual_time import Timeline, VirtualClock
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.fake_handlers import Harness, running_server
from tests.support.networks import MemoryNet, Net, wait_until
from tests.unit.broker.network.test_request_memory import HEARTBEAT, beat, large_frame

LIMIT = 2_000_000
SIZE = 1_500_000


def frames_of(harness: Harness) -> FrameMemoryStatistics:
    return harness.server.statistics().frames


def answer(ctx: RequestContext, request: Any) -> Any:
    return HeartbeatResponse()


def test_unfinished_requests_hold_no_more_than_the_limit_and_one_request(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: answer}, incomplete_bytes=LIMIT) as harness:
            frame = large_frame(SIZE)
            clients = [await harness.connect() for _ in range(8)]
            async with trio.open_nursery() as sending:
                for client in clients:
                    sending.start_soon(client.send, frame[:-1])
                await wait_until(lambda: frames_of(harness).waiting > 0)
                await net.settle()
                assert LIMIT <= frames_of(harness).held <= LIMIT + WINDOW + SIZE
                # Small requests are never held up.
                good = await harness.connect()
                await good.call(HEARTBEAT, 3)
                # Those that finish make room, whatever the order.
                for client in clients:
                    sending.start_soon(_finish, client, frame)
            await wait_until(lambda: frames_of(harness).held == 0)
            assert frames_of(harness).waiting == 0

    net.run(main)


async def _finish(client: Any, frame: bytes) -> None:
    await client.send(frame[-1:])
    await client.receive_frame()


def test_who_does_not_hurry_makes_room_for_those_who_wait() -> None:
    net = MemoryNet()

    async def main() -> None:
        async with running_server(
            net, {HEARTBEAT: answer}, incomplete_bytes=LIMIT, max_idle_s=None
        ) as harness:
            frame = large_frame(SIZE)
            stalled = [await harness.connect() for _ in range(3)]
            for client in stalled:
                await client.send(frame[:900_000])
            await net.settle()
            honest = await harness.connect()
            async with trio.open_nursery() as sending:
                sending.start_soon(honest.send, frame)
                await honest.receive_frame()
            server = harness.server.statistics()
            assert server.overdue_closed >= 1
            assert sum(server.connections.values()) >= 1

    net.run(main)


def test_a_parked_request_holds_nothing(net: Net) -> None:
    pending = Pending()

    async def main() -> None:
        async with running_server(
            net, {HEARTBEAT: lambda *_: pending}, incomplete_bytes=LIMIT
        ) as harness:
            client = await harness.connect()
            await client.send(large_frame(SIZE))
            await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)
            assert frames_of(harness).held == 0
            pending.complete(HeartbeatResponse())
            await client.receive_frame()

    net.run(main)


def test_a_client_that_goes_away_leaves_nothing(net: Net) -> None:
    async def main() -> None:
        async with running_server(net, {HEARTBEAT: answer}, incomplete_bytes=LIMIT) as harness:
            client = await harness.connect()
            await client.send(large_frame(SIZE)[:700_000])
            await wait_until(lambda: frames_of(harness).held >= 700_000)
            client.close()
            await wait_until(lambda: frames_of(harness).held == 0)

    net.run(main)


def test_a_byte_now_and_then_is_idle() -> None:
    net = MemoryNet()

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: answer}, max_idle_s=4.0) as harness:
            drip = await harness.connect()
            frame = beat(1, 30_000)
            with suppress(OSError):
                for byte in frame[:30]:
                    await drip.send(bytes((byte,)))
                    await net.clock.sleep(0.4)
            assert await drip.closed_by_peer()
            assert harness.server.statistics().idle_closed == 1
            slow = await harness.connect()
            for at in range(0, len(frame), 1000):  # for longer than that, but it comes
                await slow.send(frame[at : at + 1000])
                await net.clock.sleep(0.25)
            await slow.receive_frame()

    net.run(main)


# The rules, one by one.


def begun(memory: FrameMemory, wanted: int, arrived: int, now: float = 0.0) -> FrameHold:
    hold = FrameHold(memory)
    hold.note(wanted, arrived, now)
    return hold


def test_what_has_arrived_counts_and_not_what_was_announced() -> None:
    memory = FrameMemory(LIMIT)
    hold = begun(memory, 100_000_000, 5000)
    assert memory.held == 5000
    assert hold.take_window() == 5000 + WINDOW
    assert memory.held == 5000 + WINDOW
    hold.settle()
    assert memory.held == 5000
    small = begun(memory, SMALL_FRAME, 9000)
    assert memory.held == 5000
    small.end()
    hold.end()
    assert memory.held == 0


def test_one_goes_on_when_nothing_is_left_and_then_the_next() -> None:
    memory = FrameMemory(1000)
    first, second = begun(memory, 50_000, 900), begun(memory, 50_000, 900)
    assert first.take_window() == 50_000
    assert second.take_window() == 0
    assert first.take_window() == 50_000
    first.end()
    assert second.take_window() == 50_000


def test_the_lanes_are_few_and_who_is_done_gives_its_own_back() -> None:
    memory = FrameMemory(1 << 40)
    holds = [begun(memory, 50_000, 900) for _ in range(LANES + 1)]
    assert [bool(hold.take_window()) for hold in holds] == [True] * LANES + [False]
    holds[0].received(49_999)
    assert not holds[-1].take_window()
    holds[0].received(50_000)
    assert holds[-1].take_window()
    assert not holds[0].take_window()
    holds[1].settle()
    assert holds[0].take_window()
    for hold in holds:
        hold.end()
    again = [begun(memory, 50_000, 900) for _ in range(LANES + 1)]
    assert [bool(hold.take_window()) for hold in again] == [True] * LANES + [False]


def test_nobody_is_overdue_while_nobody_waits() -> None:
    memory = FrameMemory(1000)
    hold = begun(memory, 50_000, 2000, now=0.0)
    assert not hold.is_overdue(LONGEST_S * 2)
    assert hold.is_too_slow(100.0, 50.0)
    assert not hold.is_too_slow(40.0, 50.0)
    assert not begun(memory, 1_000_000, 500_000).is_too_slow(100.0, 50.0)
    assert STALLED_S < LONGEST_S


def in_virtual_time(scenario: Callable[[VirtualClock], Awaitable[None]]) -> None:
    timeline = Timeline()

    async def run() -> None:
        await scenario(VirtualClock(timeline))

    trio.run(run, clock=timeline)


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


def test_while_others_wait_who_holds_memory_has_to_hurry() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(1000)
        hold, waiter = begun(memory, 50_000, 2000), begun(memory, 50_000, 100)
        small = begun(memory, SMALL_FRAME, 2000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter.wait, clock.monotonic)
            await settle()
            assert memory.statistics() == FrameMemoryStatistics(held=2100, waiting=1)
            assert not hold.is_overdue(STALLED_S)
            assert hold.is_overdue(STALLED_S + 0.1)
            assert not small.is_overdue(LONGEST_S * 2)  # it holds nothing that counts
            for now in range(1, round(LONGEST_S) + 2):
                assert hold.is_overdue(now - 0.5) == (now - 0.5 > LONGEST_S)
                hold.note(50_000, 2000 + now, float(now))  # sends a byte every second
            nursery.cancel_scope.cancel()

    in_virtual_time(scenario)


def test_what_was_waited_for_memory_is_not_the_clients_time() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(1000)
        ahead, waiter = begun(memory, 50_000, 2000), begun(memory, 50_000, 100)
        assert ahead.take_window()
        assert not waiter.take_window()
        begin = clock.monotonic()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter.wait, clock.monotonic)
            await clock.sleep(LONGEST_S * 2)
            ahead.end()
        assert waiter.take_window()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(begun(memory, 50_000, 2000).wait, clock.monotonic)
            await settle()
            now = clock.monotonic() - begin
            assert not waiter.is_overdue(now + STALLED_S)
            assert waiter.is_overdue(now + STALLED_S + 0.1)
            assert not waiter.is_too_slow(now, LONGEST_S)
            nursery.cancel_scope.cancel()

    in_virtual_time(scenario)


def test_when_nothing_is_left_one_goes_on_after_the_other_in_the_order_they_came() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(10_000)
        holds = [begun(memory, 50_000, 20_000) for _ in range(4)]
        went: list[int] = []

        async def go_on(number: int) -> None:
            while not holds[number].take_window():
                await holds[number].wait(clock.monotonic)
            went.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(go_on, number)
                await settle()
            assert went == [0]
            for number in range(3):
                holds[number].end()
                await settle()
                assert went == list(range(number + 2))
            assert memory.statistics() == FrameMemoryStatistics(held=50_000, waiting=0)

    in_virtual_time(scenario)


def test_a_window_that_is_given_back_wakes_who_waits() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(50_000)
        first, second = begun(memory, 100_000, 900), begun(memory, 100_000, 900)
        assert first.take_window() == 100_000
        async with trio.open_nursery() as nursery:
            # Whoever goes ahead when nothing is left holds the way until its frame is done.
            third = begun(memory, 100_000, 900)
            assert third.take_window() == 100_000
            assert not second.take_window()
            nursery.start_soon(second.wait, clock.monotonic)
            await settle()
            third.end()
            assert memory.statistics().waiting == 0
            assert second.take_window()
            second.settle()
            nursery.start_soon(third.wait, clock.monotonic)
            await settle()
            first.settle()
            assert memory.statistics() == FrameMemoryStatistics(held=1800, waiting=0)

    in_virtual_time(scenario)


async def go_on(hold: FrameHold, clock: VirtualClock, went: list[FrameHold]) -> None:
    """Wait for a window; then it is one of those that went."""
    while not hold.take_window():
        await hold.wait(clock.monotonic)
    went.append(hold)


def test_all_for_whom_memory_became_free_go_on() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(100_000)
        large = begun(memory, 200_000, 150_000)
        assert large.take_window()
        holds = [begun(memory, 20_000, 1000) for _ in range(4)]
        went: list[FrameHold] = []

        async with trio.open_nursery() as nursery:
            for hold in holds:
                nursery.start_soon(go_on, hold, clock, went)
            await settle()
            assert went == []
            large.end()
            await settle()
            assert len(went) == 4

    in_virtual_time(scenario)


def test_who_waits_for_a_lane_gets_it_when_a_frame_is_whole() -> None:
    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory(1 << 40)
        holds = [begun(memory, 50_000, 900) for _ in range(LANES)]
        assert all(hold.take_window() for hold in holds)
        other = begun(memory, 50_000, 900)
        assert not other.take_window()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.wait, clock.monotonic)
            await settle()
            holds[3].received(50_000)
            assert memory.statistics().waiting == 0
            assert other.take_window()
            nursery.cancel_scope.cancel()

    in_virtual_time(scenario)


def test_who_waits_for_memory_keeps_no_lane_from_who_comes_next() -> None:
    """Or the end of the one that goes ahead would wake nobody, and all would wait for ever."""

    async def scenario(clock: VirtualClock) -> None:
        memory = FrameMemory((LANES + 1) * WINDOW)
        gone, ahead = begun(memory, 20 * WINDOW, 10 * WINDOW), begun(memory, 2 * WINDOW, 900)
        assert ahead.take_window()  # without a lane, as nothing is left
        gone.end()
        holds = [begun(memory, 5 * WINDOW, 1) for _ in range(LANES)]
        for hold in holds:
            assert hold.take_window() == WINDOW + 1
        went: list[FrameHold] = []

        async with trio.open_nursery() as nursery:
            for hold in holds:
                hold.note(5 * WINDOW, WINDOW + 1, clock.monotonic())
                nursery.start_soon(go_on, hold, clock, went)
            await settle()
            assert memory.statistics().waiting == LANES
            ahead.end()
            await settle()
            assert went
            nursery.cancel_scope.cancel()

    in_virtual_time(scenario)
