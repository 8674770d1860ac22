"""Timers: order, cancelling, failing callbacks, and the task that sleeps until the next one."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
import trio.testing

from broker.deadlines import Deadlines
from broker.world.driver import Driver
from broker.world.turns import PAUSES
from broker.world.workers import InlineWorkers
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import VirtualClock


def test_due_callbacks_run_in_order_of_their_deadline() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    fired: list[str] = []
    deadlines.schedule(2, lambda: fired.append("second"))
    deadlines.schedule(1, lambda: fired.append("first"))
    deadlines.schedule(3, lambda: fired.append("third"))
    assert deadlines.run_due() == 0
    clock.advance(2)
    assert deadlines.run_due() == 2
    assert fired == ["first", "second"]
    assert deadlines.next_deadline() == pytest.approx(clock.monotonic() + 1)
    clock.advance(5)
    assert deadlines.run_due() == 1
    assert deadlines.next_deadline() is None


def test_a_cancelled_timer_does_not_fire_and_lets_go_of_its_callback() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    fired: list[int] = []
    handle = deadlines.schedule(1, lambda: fired.append(1))
    assert handle.active
    assert handle.cancel()
    assert not handle.cancel()
    assert not handle.active
    clock.advance(2)
    assert deadlines.run_due() == 0
    assert not fired
    assert deadlines.statistics().active == 0


def test_a_timer_may_cancel_another_that_is_due_at_the_same_time() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    fired: list[str] = []
    deadlines.schedule(1, lambda: later.cancel())
    later = deadlines.schedule(1, lambda: fired.append("later"))
    clock.advance(1)
    assert deadlines.run_due() == 1
    assert not fired
    assert deadlines.statistics().active == 0


def test_a_timer_that_schedules_itself_without_delay_runs_once_a_round() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    rounds: list[int] = []

    def again() -> None:
        rounds.append(1)
        deadlines.schedule(0, again)

    deadlines.schedule(0, again)
    for expected in (1, 2, 3):
        assert deadlines.run_due() == 1
        assert len(rounds) == expected


async def test_a_callback_that_raises_ends_the_task_that_fires_timers(clock: VirtualClock) -> None:
    """Logged and passed over, it would leave whoever was parked behind it parked for ever."""
    deadlines = Deadlines(clock)

    def broken() -> None:
        raise LookupError("broken timer")

    deadlines.schedule(1, broken)
    with pytest.raises(LookupError, match="broken timer"):
        await Driver(InlineWorkers(), clock).run(deadlines.run())


def test_thousands_of_cancelled_timers_leave_the_heap() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    handles = [deadlines.schedule(60, lambda: None) for _ in range(10_000)]
    for handle in handles[1:]:
        handle.cancel()
    assert deadlines.statistics().active == 1
    assert len(deadlines._heap) < 200


def test_random_schedules_and_cancels_agree_with_a_plain_list() -> None:
    random_ = random.Random(7)
    clock = ManualClock()
    deadlines = Deadlines(clock)
    fired: list[int] = []
    model: dict[int, tuple[float, object]] = {}
    handles = {}
    for number in range(3000):
        choice = random_.random()
        if choice < 0.5:
            delay = random_.randrange(0, 50)
            handles[number] = deadlines.schedule(delay, lambda number=number: fired.append(number))  # type: ignore[misc]
            model[number] = (clock.monotonic() + delay, number)
        elif choice < 0.8 and model:
            victim = random_.choice(list(model))
            del model[victim]
            assert handles[victim].cancel()
        else:
            clock.advance(random_.randrange(0, 4))
            expected = sorted(value for value in model.values() if value[0] <= clock.monotonic())
            fired.clear()
            assert deadlines.run_due() == len(expected)
            assert fired == [number for _, number in expected]
            for _, number_ in expected:
                del model[number_]  # type: ignore[arg-type]
        assert deadlines.statistics().active == len(model)


@asynccontextmanager
async def firing(clock: VirtualClock) -> AsyncIterator[Deadlines]:
    """Timers which a task beside the test fires."""
    deadlines = Deadlines(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Driver(InlineWorkers(), clock).run, deadlines.run())
        yield deadlines
        nursery.cancel_scope.cancel()


async def test_the_task_sleeps_until_the_earliest_timer_and_wakes_for_an_earlier_one(
    clock: VirtualClock,
) -> None:
    async with firing(clock) as deadlines:
        fired: list[tuple[str, float]] = []

        def note(name: str) -> None:
            fired.append((name, clock.monotonic()))

        await clock.sleep(1)
        deadlines.schedule(10, lambda: note("ten"))
        await clock.sleep(1)
        deadlines.schedule(2, lambda: note("two"))
        deadlines.schedule(3, lambda: note("never")).cancel()
        await clock.sleep(20)
        assert fired == [("two", 4), ("ten", 11)]


async def test_thousands_that_are_due_together_let_others_have_their_turn(
    clock: VirtualClock,
) -> None:
    async with firing(clock) as deadlines:
        fired: list[int] = []
        seen: list[int] = []
        begun = trio.Event()
        deadlines.schedule(1, begun.set)
        for number in range(1000):
            deadlines.schedule(1, lambda number=number: fired.append(number))  # type: ignore[misc]
        await begun.wait()
        while len(fired) < 1000:
            seen.append(len(fired))
            await trio.lowlevel.checkpoint()
        assert fired == sorted(fired)
        # In a pass of the loop tasks run in any order: two turns may lie between two looks.
        assert max(after - before for before, after in pairwise([*seen, 1000])) <= 2 * (PAUSES + 1)


async def test_a_timer_that_is_due_may_be_cancelled_until_its_turn(clock: VirtualClock) -> None:
    async with firing(clock) as deadlines:
        fired: list[int] = []
        begun = trio.Event()
        deadlines.schedule(1, begun.set)
        handles = [deadlines.schedule(1, lambda: fired.append(1)) for _ in range(1000)]
        await begun.wait()
        waiting = deadlines.statistics().active
        assert waiting == 1000 - len(fired)
        assert handles[-1].cancel()
        while len(fired) < 999:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        assert len(fired) == 999
        assert deadlines.statistics().active == 0
