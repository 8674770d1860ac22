"""The loop measures its turns, and says who held it."""

import logging

import pytest
import trio

from broker.background import Background
from broker.deadlines import Deadlines
from broker.world.driver import Driver
from broker.world.loop_watch import LINE_EVERY_S, LoopWatch, name_of
from broker.world.workers import InlineWorkers
from storage.task import Task
from storage.waits import PAUSE
from tests.support.manual_clock import ManualClock
from tests.support.trio_clock import TrioClock


class Watched:
    """A watch on a clock that the test moves, so turns have the length that it gives them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.watch = LoopWatch(self.clock)

    def turn(self, seconds: float) -> None:
        self.watch.after_io_wait(0)
        self.clock.advance(seconds)
        self.watch.before_io_wait(0)

    def work(self, seconds: float, what: str) -> None:
        began = self.clock.monotonic()
        self.clock.advance(seconds)
        self.watch.note(began, self.clock.monotonic(), lambda: what)


@pytest.fixture
def watched(caplog: pytest.LogCaptureFixture) -> Watched:
    caplog.set_level(logging.WARNING)
    return Watched()


def test_the_longest_turn_is_that_of_the_last_minute_or_two(watched: Watched) -> None:
    for seconds in (0.002, 0.04, 0.003):
        watched.turn(seconds)
    assert watched.watch.statistics().longest_turn_s == pytest.approx(0.04)
    watched.clock.advance(60)
    watched.turn(0.005)
    assert watched.watch.statistics().longest_turn_s == pytest.approx(0.04)
    watched.clock.advance(60)
    assert watched.watch.statistics().longest_turn_s == pytest.approx(0.005)
    watched.clock.advance(600)
    assert watched.watch.statistics().longest_turn_s == 0
    assert watched.watch.statistics().long_turns == 0


def test_what_a_turn_has_done_before_it_is_begun_anew_does_not_count(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.watch.after_io_wait(0)
    watched.work(0.2, "collecting what start-up left")
    watched.watch.begin_turn()
    watched.clock.advance(0.003)
    watched.watch.before_io_wait(0)
    assert watched.watch.statistics().longest_turn_s == pytest.approx(0.003)
    assert not caplog.records


def test_turns_above_50_ms_are_counted_and_told(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.turn(0.049)
    assert not caplog.messages
    watched.watch.after_io_wait(0)
    watched.work(0.02, "a small thing")
    watched.work(0.3, "Metadata of client x")
    watched.work(0.1, "another thing")
    watched.watch.before_io_wait(0)
    assert caplog.messages == [
        "The event loop was held for 420 ms, 300 ms of it by Metadata of client x"
    ]
    statistics = watched.watch.statistics()
    assert statistics.long_turns == 1
    assert statistics.long_turns_s == pytest.approx(0.42)


def test_a_note_is_of_its_own_turn_only(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.watch.after_io_wait(0)
    began = watched.clock.monotonic()
    watched.work(0.03, "what was before")
    watched.watch.before_io_wait(0)
    watched.watch.after_io_wait(0)
    watched.clock.advance(0.06)
    # Work that was suspended in between has not held the loop.
    watched.watch.note(began, watched.clock.monotonic(), lambda: "what was suspended")
    watched.watch.before_io_wait(0)
    assert caplog.messages == ["The event loop was held for 60 ms, by nothing that is measured"]


def test_what_is_most_of_a_larger_thing_names_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    for handler in (0.10, 0.02):
        watched.clock.advance(LINE_EVERY_S)
        watched.watch.after_io_wait(0)
        began = watched.clock.monotonic()
        watched.work(handler, "the request")
        watched.clock.advance(0.11 - handler)
        watched.watch.note(began, watched.clock.monotonic(), lambda: "the connection")
        watched.watch.before_io_wait(0)
    assert [message.split(" by ")[1] for message in caplog.messages] == [
        "the request",
        "the connection",
    ]


def test_one_line_in_ten_seconds_tells_of_the_others(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        watched.turn(0.1)
    assert len(caplog.messages) == 1
    watched.clock.advance(LINE_EVERY_S)
    watched.turn(0.1)
    assert caplog.messages[1:] == [
        "The event loop was held for 100 ms, by nothing that is measured"
        " (4 such turns were not told before)"
    ]


def test_collecting_garbage_is_named(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.watch.after_io_wait(0)
    watched.watch.note_collection("start", {"generation": 2})
    watched.clock.advance(0.2)
    watched.watch.note_collection("stop", {"generation": 2})
    watched.watch.before_io_wait(0)
    assert "200 ms of it by collecting garbage, generation 2" in caplog.text


@pytest.mark.usefixtures("loop")
async def test_timers_and_tasks_are_named(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    watch = LoopWatch(clock)

    def noted() -> str:
        name, watch._noted, watch._noted_s = watch._noted, "", 0.0
        return name

    deadlines = Deadlines(clock, watch)
    deadlines.schedule(0, lambda: clock.advance(0.1))
    deadlines.run_due()
    assert noted().startswith("the timer test_timers_and_tasks_are_named")

    async def retention() -> None:
        await PAUSE
        clock.advance(0.1)

    task = Task(name="log-retention", initial_delay_ms=0, period_ms=10**6, run=retention)
    driver = Driver(InlineWorkers(), clock, watch)
    background = Background(threads=1, clock=TrioClock(), driver=driver)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(background.run, [task])
        while not background.statistics() or not watch._noted:
            await trio.lowlevel.checkpoint()
        assert noted() == "the background task log-retention"
        nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("loop")
async def test_trio_calls_the_watch_around_its_wait() -> None:
    clock = ManualClock()
    watch = LoopWatch(clock)
    trio.lowlevel.add_instrument(watch)
    await trio.lowlevel.checkpoint()
    clock.advance(0.3)
    await trio.lowlevel.checkpoint()
    assert watch.statistics().longest_turn_s == pytest.approx(0.3)


def test_callbacks_have_names() -> None:
    from functools import partial

    assert name_of(partial(partial(name_of, 1), 2)) == "name_of"
    assert name_of(ManualClock().advance) == "ManualClock.advance"


def test_the_wait_for_something_to_do_is_idle(watched: Watched) -> None:
    assert watched.watch.statistics().idle_s is None, "not installed: nobody knows"
    watched.turn(0.01)
    watched.clock.advance(3)
    watched.turn(0.01)
    watched.clock.advance(4)
    watched.turn(0.01)
    assert watched.watch.statistics().idle_s == pytest.approx(7)
