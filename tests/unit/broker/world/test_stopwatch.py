"""How long work runs, without its waits."""

import pytest

from broker.world.stopwatch import Stopwatch
from broker.world.turns import TURN_S
from storage.waits import PAUSE, Signal, at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock


def test_waits_are_left_out() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock.monotonic)
    signal = Signal[str]()

    async def work() -> str:
        clock.advance(1)
        answer = await signal
        clock.advance(2)
        return answer

    begun = begin(watch.time(work()))
    clock.advance(100)
    assert watch.worked_s == 1
    signal.fire("answer")
    assert begun.reply == "answer"
    assert watch.worked_s == 3
    assert at_once(watch.time(work())) == "answer"
    assert watch.worked_s == 6


def test_the_turns_of_others_are_left_out() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock.monotonic)

    async def work() -> None:
        for _ in range(3):
            clock.advance(2 * TURN_S)
            await PAUSE

    task = watch.time(work())
    for _ in range(3):
        task.send(None)
        clock.advance(100)
    with pytest.raises(StopIteration):
        task.send(None)
    assert watch.worked_s == pytest.approx(6 * TURN_S)


def test_work_that_fails_counts_too() -> None:
    clock = ManualClock()
    watch = Stopwatch(clock.monotonic)

    async def work() -> None:
        clock.advance(1)
        raise ValueError

    with pytest.raises(ValueError):
        at_once(watch.time(work()))
    assert watch.worked_s == 1
