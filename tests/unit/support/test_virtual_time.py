"""Virtual time: it jumps when all wait, stands still while anybody works, and can be stopped."""

import math
import time
from collections.abc import Awaitable, Callable

import pytest
import trio

from broker.world.clock import SystemClock, TaskClock
from tests.support.virtual_time import START_WALL_MS, Timeline, VirtualClock


def run(main: Callable[[VirtualClock], Awaitable[None]]) -> Timeline:
    timeline = Timeline()

    async def begin() -> None:
        await main(VirtualClock(timeline))

    trio.run(begin, clock=timeline)
    return timeline


def test_a_day_takes_no_time_and_both_clocks_show_it() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(86_400)
        assert clock.monotonic() == 86_400
        assert clock.wall_ms() == START_WALL_MS + 86_400_000

    began = time.monotonic()
    run(main)
    assert time.monotonic() - began < 600


def test_time_stands_still_while_a_task_works() -> None:
    async def main(clock: VirtualClock) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clock.sleep, 1)
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            assert clock.monotonic() == 0

    assert run(main).now == 1


def test_a_timeout_cancels_what_is_inside_and_only_that() -> None:
    async def main(clock: VirtualClock) -> None:
        with clock.timeout(2) as scope:
            await trio.sleep_forever()
        assert scope.cancelled_caught
        assert clock.monotonic() == 2
        with clock.timeout(2) as scope:
            await clock.sleep(1)
        assert not scope.cancelled_caught
        assert clock.monotonic() == 3

    run(main)


def test_a_stopped_clock_wakes_nobody_and_all_at_once_when_it_goes_on() -> None:
    woken: list[tuple[str, float]] = []

    async def main(clock: VirtualClock) -> None:
        other = VirtualClock(clock._timeline)

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((name, clock.monotonic()))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper, "a", 1)
            nursery.start_soon(sleeper, "b", 2)
            nursery.start_soon(sleeper, "c", 9)
            await other.sleep(0.5)
            clock.stop()
            nursery.start_soon(sleeper, "late", 0)
            with other.timeout(4.5):
                await trio.sleep_forever()
            assert woken == []
            clock.go_on()

    run(main)
    assert sorted(woken[:3]) == [("a", 5.0), ("b", 5.0), ("late", 5.0)]
    assert woken[3:] == [("c", 9.0)]


def test_the_wall_may_be_set_back_and_monotonic_time_does_not_notice() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep(10)
        clock.shift_wall(-60_000)
        assert clock.wall_ms() == START_WALL_MS - 50_000
        assert clock.monotonic() == 10

    run(main)


@pytest.mark.parametrize("seconds", [-1, 0])
def test_both_clocks_take_what_is_over_for_now(seconds: float) -> None:
    async def main() -> None:
        clocks: list[TaskClock] = [SystemClock(), VirtualClock(Timeline())]
        for clock in clocks:
            await clock.sleep(seconds)
            await clock.sleep_until(clock.monotonic() + seconds)
            with clock.timeout(seconds) as scope:
                await trio.sleep(math.inf)
            assert scope.cancelled_caught

    trio.run(main, clock=Timeline())
