"""S-CMP-12: the rate of all cleaners together."""

from typing import Any

import pytest
import trio

from broker.cleaner.throttler import CHECK_INTERVAL_S, Throttler
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from tests.support.virtual_time import Timeline, VirtualClock


def in_virtual_time(scenario: Any) -> None:
    timeline = Timeline()
    trio.run(scenario, VirtualClock(timeline), clock=timeline)


def test_s_cmp_12_what_comes_too_fast_waits_until_the_rate_is_right() -> None:
    async def scenario(clock: VirtualClock) -> None:
        throttler = Throttler(clock, 1000)
        run = Driver(InlineWorkers(), clock).run
        await run(throttler.throttle(300))
        assert clock.monotonic() == 0
        await clock.sleep(CHECK_INTERVAL_S + 0.001)
        await run(throttler.throttle(700))
        assert clock.monotonic() == pytest.approx(1)
        # The next period begins then, with nothing in it.
        await run(throttler.throttle(5000))
        assert clock.monotonic() == pytest.approx(1)

    in_virtual_time(scenario)


def test_s_cmp_12_what_comes_slowly_does_not_wait_and_saves_nothing_up() -> None:
    async def scenario(clock: VirtualClock) -> None:
        throttler = Throttler(clock, 1000)
        run = Driver(InlineWorkers(), clock).run
        for _ in range(10):
            await clock.sleep(1)
            await run(throttler.throttle(900))
        assert clock.monotonic() == 10
        await clock.sleep(1)
        await run(throttler.throttle(3000))
        assert clock.monotonic() == pytest.approx(13)

    in_virtual_time(scenario)


def test_s_cmp_12_all_who_share_it_wait() -> None:
    async def scenario(clock: VirtualClock) -> None:
        throttler = Throttler(clock, 1000)
        run = Driver(InlineWorkers(), clock).run
        await clock.sleep(0.5)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(run, throttler.throttle(1000))
        assert clock.monotonic() == pytest.approx(1)
        await clock.sleep(0.5)
        await run(throttler.throttle(0))
        assert clock.monotonic() == pytest.approx(3)

    in_virtual_time(scenario)


def test_s_cmp_12_another_rate_holds_from_the_next_look_on() -> None:
    async def scenario(clock: VirtualClock) -> None:
        throttler = Throttler(clock, 1.7976931348623157e308)
        run = Driver(InlineWorkers(), clock).run
        await clock.sleep(1)
        await run(throttler.throttle(1e15))
        assert clock.monotonic() == 1
        throttler.rate = 100
        await clock.sleep(1)
        await run(throttler.throttle(400))
        assert clock.monotonic() == pytest.approx(5)

    in_virtual_time(scenario)
