"""Turns: who waits beside long work waits for one turn of it, not for all of it."""

import pytest
import trio

from broker.world.driver import Driver
from broker.world.turns import PAUSES, TURN_S
from broker.world.workers import InlineWorkers
from storage.waits import PAUSE
from tests.support.manual_clock import ManualClock


class _Steps(trio.abc.Instrument):
    """Counts how often the event loop went on with the only task there is."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith(".go_through"):
            self.count += 1


def _interruptions(*, items: int, ms_each: int) -> int:
    """How often others had their turn while so many items were gone through."""
    clock, steps = ManualClock(), _Steps()

    async def items_in_turns() -> None:
        for _ in range(items):
            clock.advance(ms=ms_each)
            await PAUSE

    async def go_through() -> None:
        await Driver(InlineWorkers(), clock).run(items_in_turns())

    trio.run(go_through, instruments=[steps])
    return steps.count - 1


def test_short_work_is_not_interrupted() -> None:
    assert _interruptions(items=PAUSES, ms_each=0) == 0


def test_a_turn_ends_with_its_time() -> None:
    turn_ms = round(TURN_S * 1000)
    assert _interruptions(items=10, ms_each=turn_ms + 1) == 10
    assert _interruptions(items=turn_ms - 1, ms_each=1) == 0


def test_a_turn_ends_with_its_pauses_where_time_stands_still() -> None:
    assert _interruptions(items=3 * (PAUSES + 1), ms_each=0) == 3


@pytest.mark.usefixtures("loop")
async def test_one_of_many_long_works_continues_in_a_pass_of_the_loop() -> None:
    """A hundred works of two milliseconds a turn would be a fifth of a second for all others."""
    turns_since = 0
    most = 0

    clock = ManualClock()
    driver = Driver(InlineWorkers(), clock)

    async def work() -> None:
        nonlocal turns_since
        for _ in range(5):
            clock.advance(2 * TURN_S)
            await PAUSE
            turns_since += 1

    async def other() -> None:
        nonlocal turns_since, most
        await trio.lowlevel.checkpoint()
        turns_since = 0
        while True:
            await trio.lowlevel.checkpoint()
            most = max(most, turns_since)
            turns_since = 0

    async with trio.open_nursery() as outer:
        outer.start_soon(other)
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(driver.run, work())
        outer.cancel_scope.cancel()
    assert most <= 2
