"""Virtual time: it jumps when all wait, stands still while anybody works, and can be stopped."""

import math
import time

import pytest
import trio

from broker.world.clock import SystemClock, TaskClock
from tests.support.virtual_time import START_WALL_MS, VirtualClock


async def test_a_day_takes_no_time_and_both_clocks_show_it(clock: VirtualClock) -> None:
    began = time.monotonic()
    await clock.sleep(86_400)
    assert clock.monotonic() == 86_400
    assert clock.wall_ms() == START_WALL_MS + 86_400_000
    assert time.monotonic() - began < 600


async def test_time_stands_still_while_a_task_works(clock: VirtualClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clock.sleep, 1)
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert clock.monotonic() == 0
    assert clock.monotonic() == 1


async def test_a_timeout_cancels_what_is_inside_and_only_that(clock: VirtualClock) -> None:
    with clock.timeout(2) as scope:
        await trio.sleep_forever()
    assert scope.cancelled_caught
    assert clock.monotonic() == 2
    with clock.timeout(2) as scope:
        await clock.sleep(1)
    assert not scope.cancelled_caught
    assert clock.monotonic() == 3


async def test_a_stopped_clock_wakes_nobody_and_all_at_once_when_it_goes_on(
    clock: VirtualClock,
) -> None:
    woken: list[tuple[str, float]] = []
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
    assert sorted(woken[:3]) == [("a", 5.0), ("b", 5.0), ("late", 5.0)]
    assert woken[3:] == [("c", 9.0)]


async def test_the_wall_may_be_set_back_and_monotonic_time_does_not_notice(
    clock: VirtualClock,
) -> None:
    await clock.sleep(10)
    clock.shift_wall(-60_000)
    assert clock.wall_ms() == START_WALL_MS - 50_000
    assert clock.monotonic() == 10


@pytest.mark.parametrize("seconds", [-1, 0])
async def test_both_clocks_take_what_is_over_for_now(clock: VirtualClock, seconds: float) -> None:
    clocks: list[TaskClock] = [SystemClock(), clock]
    for one in clocks:
        await one.sleep(seconds)
        await one.sleep_until(one.monotonic() + seconds)
        with one.timeout(seconds) as scope:
            await trio.sleep(math.inf)
        assert scope.cancelled_caught
