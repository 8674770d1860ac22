"""S-CMP-12: the rate of all cleaners together."""

import sys

import pytest
import trio

from broker.cleaner.throttler import CHECK_INTERVAL_S, Throttler
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from tests.support.virtual_time import VirtualClock


class Bench:
    """A throttler in virtual time, at a thousand bytes a second."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.run = clock.run
        self.throttler = Throttler(clock, 1000)
        self._driver = Driver(InlineWorkers(), clock)

    async def throttle(self, read: float) -> None:
        await self._driver.run(self.throttler.throttle(read))


@pytest.fixture
def bench(clock: VirtualClock) -> Bench:
    return Bench(clock)


async def test_s_cmp_12_what_comes_too_fast_waits_until_the_rate_is_right(bench: Bench) -> None:
    await bench.throttle(300)
    assert bench.clock.monotonic() == 0
    await bench.clock.sleep(CHECK_INTERVAL_S + 0.001)
    await bench.throttle(700)
    assert bench.clock.monotonic() == pytest.approx(1)
    # The next period begins then, with nothing in it.
    await bench.throttle(5000)
    assert bench.clock.monotonic() == pytest.approx(1)


async def test_s_cmp_12_what_comes_slowly_does_not_wait_and_saves_nothing_up(bench: Bench) -> None:
    for _ in range(10):
        await bench.clock.sleep(1)
        await bench.throttle(900)
    assert bench.clock.monotonic() == 10
    await bench.clock.sleep(1)
    await bench.throttle(3000)
    assert bench.clock.monotonic() == pytest.approx(13)


async def test_s_cmp_12_all_who_share_it_wait(bench: Bench) -> None:
    await bench.clock.sleep(0.5)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(bench.throttle, 1000)
    assert bench.clock.monotonic() == pytest.approx(1)
    await bench.clock.sleep(0.5)
    await bench.throttle(0)
    assert bench.clock.monotonic() == pytest.approx(3)


async def test_s_cmp_12_another_rate_holds_from_the_next_look_on(bench: Bench) -> None:
    bench.throttler.rate = sys.float_info.max
    await bench.clock.sleep(1)
    await bench.throttle(1e15)
    assert bench.clock.monotonic() == 1
    bench.throttler.rate = 100
    await bench.clock.sleep(1)
    await bench.throttle(400)
    assert bench.clock.monotonic() == pytest.approx(5)
