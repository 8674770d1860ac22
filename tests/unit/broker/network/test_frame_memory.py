"""incomplete.request.max.bytes: what unfinished requests hold is bounded, and nobody is stuck."""

from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from broker.fairness import NOBODY, Client
from broker.network.frame_memory import (
    HURRY,
    LANES,
    LONGEST_S,
    ORDINARY,
    PATIENCE_S,
    SLOWEST,
    SMALL_FRAME,
    STALLED_S,
    WINDOW,
    FrameHold,
    FrameMemory,
    FrameMemoryStatistics,
)
from broker.request import RequestContext
from protocol.messages.heartbeat import HeartbeatResponse
from storage.waits import Until
from tests.support.begun import begin
from tests.support.driving import driver
from tests.support.fake_handlers import Harness, Parking, connected, running_server
from tests.support.networks import MemoryNet, Net, wait_until
from tests.support.virtual_time import VirtualClock
from tests.unit.broker.network.test_request_memory import HEARTBEAT, beat, large_frame

LIMIT = 2_000_000
SIZE = 1_500_000


def frames_of(harness: Harness) -> FrameMemoryStatistics:
    return harness.server.statistics().frames


def answer(ctx: RequestContext, request: Any) -> Any:
    return HeartbeatResponse()


async def test_unfinished_requests_hold_no_more_than_the_limit_and_one_request(net: Net) -> None:
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


async def _finish(client: Any, frame: bytes) -> None:
    await client.send(frame[-1:])
    await client.receive_frame()


async def test_a_client_that_does_not_hurry_makes_room_for_those_that_wait(
    pipes: MemoryNet,
) -> None:
    async with running_server(
        pipes, {HEARTBEAT: answer}, incomplete_bytes=LIMIT, max_idle_s=None
    ) as harness:
        frame = large_frame(SIZE)
        stalled = [await harness.connect() for _ in range(3)]
        for client in stalled:
            await client.send(frame[:900_000])
        await pipes.settle()
        began = pipes.clock.monotonic()
        honest = await harness.connect()
        async with trio.open_nursery() as sending:
            sending.start_soon(honest.send, frame)
            await honest.receive_frame()
        assert pipes.clock.monotonic() - began < STALLED_S, "they were told to hurry"
        server = harness.server.statistics()
        assert server.overdue_closed >= 1
        assert sum(server.connections.values()) >= 1


async def test_a_parked_request_holds_nothing(net: Net) -> None:
    pending = Parking()
    async with connected(net, {HEARTBEAT: lambda *_: pending}, incomplete_bytes=LIMIT) as (
        harness,
        client,
    ):
        await client.send(large_frame(SIZE))
        await wait_until(lambda: harness.server.statistics().buffers.in_use == 0)
        assert frames_of(harness).held == 0
        pending.complete(HeartbeatResponse())
        await client.receive_frame()


async def test_a_client_that_goes_away_leaves_nothing(net: Net) -> None:
    async with connected(net, {HEARTBEAT: answer}, incomplete_bytes=LIMIT) as (harness, client):
        await client.send(large_frame(SIZE)[:700_000])
        await wait_until(lambda: frames_of(harness).held >= 700_000)
        client.close()
        await wait_until(lambda: frames_of(harness).held == 0)


async def test_a_byte_now_and_then_is_idle(pipes: MemoryNet) -> None:
    async with running_server(pipes, {HEARTBEAT: answer}, max_idle_s=4.0) as harness:
        drip = await harness.connect()
        frame = beat(1, 30_000)
        with suppress(OSError):
            for byte in frame[:30]:
                await drip.send(bytes((byte,)))
                await pipes.clock.sleep(0.4)
        assert await drip.closed_by_peer()
        assert harness.server.statistics().idle_closed == 1
        slow = await harness.connect()
        for at in range(0, len(frame), 1000):  # for longer than that, but it comes
            await slow.send(frame[at : at + 1000])
            await pipes.clock.sleep(0.25)
        await slow.receive_frame()


# The rules, one by one.


def begun(
    memory: FrameMemory,
    wanted: int,
    arrived: int,
    now: float = 0.0,
    *,
    client: Client = NOBODY,
    ended: list[Client] | None = None,
) -> FrameHold:
    hold = FrameHold(memory, client, lambda: [] if ended is None else ended.append(client))
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


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_while_others_wait_who_holds_memory_has_to_hurry(clock: VirtualClock) -> None:
    memory = FrameMemory(1000)
    hold, waiter = begun(memory, 50_000, 2000), begun(memory, 50_000, 100)
    small = begun(memory, SMALL_FRAME, 2000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, waiter.wait(clock.monotonic))
        await settle()
        assert memory.statistics() == FrameMemoryStatistics(held=2100, waiting=1)
        assert not hold.is_overdue(STALLED_S)
        assert hold.is_overdue(STALLED_S + 0.1)
        assert not small.is_overdue(LONGEST_S * 2)  # it holds nothing that counts
        for now in range(1, round(LONGEST_S) + 2):
            assert hold.is_overdue(now - 0.5) == (now - 0.5 > LONGEST_S)
            hold.note(50_000, 2000 + now, float(now))  # sends a byte every second
        nursery.cancel_scope.cancel()


async def test_what_was_waited_for_memory_is_not_the_clients_time(clock: VirtualClock) -> None:
    await clock.sleep(7)
    memory, begin = FrameMemory(1000), clock.monotonic()
    ahead, waiter = begun(memory, 50_000, 2000, begin), begun(memory, 50_000, 100, begin)
    assert ahead.take_window()
    assert not waiter.take_window()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, waiter.wait(clock.monotonic))
        await clock.sleep(LONGEST_S * 2)
        ahead.end()
    assert waiter.take_window()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, begun(memory, 50_000, 2000).wait(clock.monotonic))
        await settle()
        now = clock.monotonic()
        assert not waiter.is_overdue(now + STALLED_S)
        assert waiter.is_overdue(now + STALLED_S + 0.1)
        assert not waiter.is_too_slow(now, LONGEST_S)
        nursery.cancel_scope.cancel()


async def test_when_nothing_is_left_one_goes_on_after_the_other_in_the_order_they_came(
    clock: VirtualClock,
) -> None:
    memory = FrameMemory(10_000)
    holds = [begun(memory, 50_000, 20_000) for _ in range(4)]
    went: list[int] = []

    async def go_on(number: int) -> None:
        while not holds[number].take_window():
            await driver().run(holds[number].wait(clock.monotonic))
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


async def test_a_window_that_is_given_back_wakes_who_waits(clock: VirtualClock) -> None:
    memory = FrameMemory(50_000)
    first, second = begun(memory, 100_000, 900), begun(memory, 100_000, 900)
    assert first.take_window() == 100_000
    async with trio.open_nursery() as nursery:
        # Whoever goes ahead when nothing is left holds the way until its frame is done.
        third = begun(memory, 100_000, 900)
        assert third.take_window() == 100_000
        assert not second.take_window()
        nursery.start_soon(driver().run, second.wait(clock.monotonic))
        await settle()
        third.end()
        assert memory.statistics().waiting == 0
        assert second.take_window()
        second.settle()
        nursery.start_soon(driver().run, third.wait(clock.monotonic))
        await settle()
        first.settle()
        assert memory.statistics() == FrameMemoryStatistics(held=1800, waiting=0)


async def go_on(hold: FrameHold, clock: VirtualClock, went: list[FrameHold]) -> None:
    """Wait for a window; then it is one of those that went."""
    while not hold.take_window():
        await driver().run(hold.wait(clock.monotonic))
    went.append(hold)


async def test_all_for_whom_memory_became_free_go_on(clock: VirtualClock) -> None:
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


def test_a_frame_of_ordinary_size_does_not_queue_behind_a_large_one() -> None:
    memory = FrameMemory(1_000_000)
    begun(memory, 3 * ORDINARY, 1_020_000)
    other, ahead = begun(memory, 3 * ORDINARY, 80_000), begun(memory, 3 * ORDINARY, 900)
    assert ahead.take_window()
    waits = []
    for size in (ORDINARY + 1, ORDINARY):
        hold = begun(memory, size, 1)
        assert not hold.take_window()
        waits.append(begin(hold.wait(float)))
    other.end()  # so many bytes are free for ordinary frames, and none for large ones
    assert [wait.done for wait in waits] == [False, True]


def test_a_wait_for_a_window_ends_with_the_client_and_tells_that_memory_is_short() -> None:
    memory = FrameMemory(100_000)
    begun(memory, 200_000, 100_000)
    short = begin(memory.wait_short())
    assert not short.done
    wait = begin(begun(memory, 200_000, 0).wait(float))
    assert isinstance(wait.waits_for, Until)
    assert wait.waits_for.parked
    assert short.done


async def test_a_waiter_for_a_lane_gets_it_when_a_frame_is_whole(clock: VirtualClock) -> None:
    memory = FrameMemory(1 << 40)
    holds = [begun(memory, 50_000, 900) for _ in range(LANES)]
    assert all(hold.take_window() for hold in holds)
    other = begun(memory, 50_000, 900)
    assert not other.take_window()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, other.wait(clock.monotonic))
        await settle()
        holds[3].received(50_000)
        assert memory.statistics().waiting == 0
        assert other.take_window()
        nursery.cancel_scope.cancel()


async def test_a_waiter_for_memory_keeps_no_lane_from_the_next_client(clock: VirtualClock) -> None:
    """Or the end of the one that goes ahead would wake nobody, and all would wait for ever."""
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


async def test_next_is_the_address_that_holds_least_and_in_it_who_has_waited_longest(
    clock: VirtualClock,
) -> None:
    memory = FrameMemory(1_000_000)
    here, there = [Client("here", n) for n in range(2)], [Client("there", n) for n in range(2)]
    full = begun(memory, 2_000_000, 1_000_000, client=Client("else", 0))
    assert full.take_window()
    holds = [begun(memory, 3_000_000, 600_000, client=client) for client in here]
    holds += [begun(memory, 3_000_000, 200_000, client=client) for client in there]
    went: list[FrameHold] = []
    async with trio.open_nursery() as nursery:
        for hold in holds:
            nursery.start_soon(go_on, hold, clock, went)
            await settle()
        full.end()
        for _ in range(3):
            await settle()
            went[-1].end()
        await settle()
    assert [hold.client for hold in went] == [*there, *here]


def test_frames_of_ordinary_size_have_a_sixteenth_beside_the_limit() -> None:
    """And beside the one that goes ahead, however large."""
    memory = FrameMemory(16_000_000)
    full = begun(memory, 90_000_000, 16_000_000)
    ahead = begun(memory, 90_000_000, 1)
    assert ahead.take_window()
    assert not begun(memory, ORDINARY + 1, 0).take_window()
    ordinary = begun(memory, ORDINARY, 0)
    assert ordinary.take_window()
    ordinary.end()
    full.note(90_000_000, 16_999_998, 0.0)
    ahead.note(90_000_000, 50_000_000, 0.0)
    last = begun(memory, 20_000, 0)
    assert last.take_window()
    assert not begun(memory, 20_000, 0).take_window()
    last.end()
    assert begun(memory, 20_000, 0).take_window()


async def test_a_slow_sender_pays_when_the_next_has_waited_for_a_second(
    clock: VirtualClock,
) -> None:
    memory = FrameMemory(10 << 20)
    ended: list[Client] = []
    start = clock.monotonic()
    slow, greedy, quick, young, waiter = (
        begun(memory, 90 << 20, 1, start, client=Client("a", n), ended=ended) for n in range(5)
    )
    await clock.sleep(10)
    now = clock.monotonic()
    slow.note(90 << 20, 2 << 20, now)
    greedy.note(90 << 20, 3 << 20, now)
    quick.note(90 << 20, 11 * HURRY, now)
    young.note(90 << 20, 3 << 20, now)
    assert [hold.is_slow(now) for hold in (slow, greedy, quick, young)] == [1, 1, 0, 1]
    assert quick.take_window()  # it goes ahead
    assert not waiter.take_window()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, waiter.wait(clock.monotonic))
        await clock.sleep(PATIENCE_S - 0.1)
        memory.relieve(clock.monotonic())
        assert not ended
        await clock.sleep(0.1)
        assert memory.relieve(clock.monotonic()) == 3
        # `young` and `greedy` hold most, and the younger goes first; both do not make room enough.
        assert ended == [young.client, greedy.client, slow.client]
        for payer in (young, greedy, slow):
            payer.end()
        quick.note(90 << 20, 11 * HURRY + 1, clock.monotonic())
        assert memory.relieve(clock.monotonic()) == 0
        assert len(ended) == 3  # who is quick pays not
        nursery.cancel_scope.cancel()


async def test_no_more_pay_than_make_room(clock: VirtualClock) -> None:
    memory = FrameMemory(10 << 20)
    start = clock.monotonic()
    slow = [begun(memory, 90 << 20, 1 << 20, start, client=Client("a", n)) for n in range(10)]
    ahead, huge, two = (begun(memory, size << 20, 1) for size in (90, 90, 2))
    assert ahead.take_window()
    await clock.sleep(10)
    now = clock.monotonic()
    ahead.note(90 << 20, 11 * HURRY, now)
    ahead.end()
    assert ahead.is_whole
    assert len(memory.payers(two, now)) == 3  # a byte is missing beside two mebibytes
    assert memory.payers(huge, now) == [slow[n] for n in (9, 8, 7, 6, 5, 4)]
    slow[0].end()
    assert memory.payers(huge, now) == []  # there is room for a window


async def test_a_frame_that_is_whole_pays_not(clock: VirtualClock) -> None:
    memory = FrameMemory(1000)
    ended: list[Client] = []
    whole, waiter = begun(memory, 50_000, 2000, ended=ended), begun(memory, 50_000, 100)
    assert whole.take_window()
    whole.received(50_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(driver().run, waiter.wait(clock.monotonic))
        await clock.sleep(100)
        memory.relieve(clock.monotonic())
        assert not ended
        nursery.cancel_scope.cancel()


def test_a_burst_before_it_does_not_make_a_trickle_quick() -> None:
    memory = FrameMemory(1000)
    hold = begun(memory, 90 << 20, 50 << 20, 100.0)
    hold.note(90 << 20, 51 << 20, 101.0)
    assert not hold.is_slow(101.0)
    hold.note(90 << 20, (51 << 20) + 1000, 102.5)
    assert not hold.is_slow(102.5)  # a thousand bytes, but a mebibyte before them
    hold.note(90 << 20, (51 << 20) + 2000, 104.0)
    assert hold.is_slow(104.0)
    assert hold.is_slow(104.5)
    hold.note(90 << 20, 55 << 20, 105.1)
    assert not hold.is_slow(105.1)


async def test_thirty_that_trickle_keep_no_produce_waiting(pipes: MemoryNet) -> None:
    async with running_server(
        pipes, {HEARTBEAT: answer}, incomplete_bytes=48 << 20, max_idle_s=None
    ) as harness:
        huge = large_frame(90_000_000)
        tricklers = [await harness.connect() for _ in range(30)]
        async with trio.open_nursery() as trickling:
            for client in tricklers:
                trickling.start_soon(_trickle, pipes, client, huge)
            await wait_until(lambda: frames_of(harness).waiting > 20)
            honest = await harness.connect()
            for size in (20_000, 1 << 20, ORDINARY - 100):
                began = pipes.clock.monotonic()
                await honest.send(large_frame(size))
                await honest.receive_frame()
                assert pipes.clock.monotonic() - began < 0.01
            trickling.cancel_scope.cancel()


async def _trickle(net: Net, client: Any, frame: bytes) -> None:
    with suppress(OSError):
        for at in range(0, len(frame), 1 << 16):
            await client.send(frame[at : at + (1 << 16)])
            await net.clock.sleep(0.1)


@pytest.mark.parametrize(("arrived", "slow"), [(60 * SLOWEST - 1, True), (60 * SLOWEST, False)])
def test_a_frame_is_too_slow_and_none_is_not(arrived: int, slow: bool) -> None:
    hold = begun(FrameMemory(10 << 20), 1 << 20, arrived)
    assert not hold.is_too_slow(60, 60)
    assert hold.is_too_slow(60, 59.9) is slow
    hold.end()
    assert not hold.is_too_slow(10_000, 60)
