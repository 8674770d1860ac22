"""Background tasks in virtual time."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from broker.background import Background
from broker.broker_state import BrokerState, BrokerStateGauge
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from storage.errors import StorageError
from storage.task import Task
from storage.waits import PAUSE, call
from tests.support.virtual_time import Timeline, VirtualClock


class Bench:
    """A `Background` in a virtual world of its own."""

    def __init__(self) -> None:
        self._timeline = Timeline()
        self.clock = VirtualClock(self._timeline)
        driver = Driver(InlineWorkers(), self.clock)
        self.background = Background(threads=1, clock=self.clock, driver=driver)
        self.runs: list[float] = []

    def run_for(
        self, seconds: float, *tasks: Task, beside: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        async def main() -> None:
            with trio.move_on_after(seconds):
                async with trio.open_nursery() as nursery:
                    if beside is not None:
                        nursery.start_soon(beside)
                    await self.background.run(tasks)

        trio.run(main, clock=self._timeline)

    def task(
        self,
        then: Callable[[], int | None] = lambda: None,
        *,
        name: str = "t",
        initial_delay_ms: int = 0,
        period_ms: int = 10_000,
    ) -> Task:
        """Notes when it runs, does `then` and says what that returns."""

        async def run() -> int | None:
            self.runs.append(round(self.clock.monotonic(), 3))
            await PAUSE
            return then()

        return Task(name=name, initial_delay_ms=initial_delay_ms, period_ms=period_ms, run=run)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_s_time_1_first_run_after_the_initial_delay_then_every_period(bench: Bench) -> None:
    bench.run_for(211, bench.task(initial_delay_ms=30_000, period_ms=60_000))
    assert bench.runs == [30, 90, 150, 210]


def test_s_time_1_a_task_may_say_when_it_wants_to_run_next(bench: Bench) -> None:
    bench.run_for(31, bench.task(lambda: 5000 * len(bench.runs), period_ms=1))
    assert bench.runs == [0, 5, 15, 30]


def test_a_task_in_a_hurry_does_not_sit_out_its_period(bench: Bench) -> None:
    begin_soon: list[Callable[[], None]] = []

    def then() -> int | None:
        if len(bench.runs) == 3:
            begin_soon[0]()  # meant for what this run has not seen any more
        return None

    async def asks() -> None:
        await bench.clock.sleep(3)
        begin_soon[0]()
        begin_soon[0]()
        await bench.clock.sleep(4)
        begin_soon[0]()

    task = replace(
        bench.task(then, initial_delay_ms=5000, period_ms=10_000), hurry=begin_soon.append
    )
    bench.run_for(30, task, beside=asks)
    assert bench.runs == [3, 7, 17, 17, 27]


def test_s_time_1_a_foreseen_failure_is_logged_and_the_task_runs_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise StorageError("/d/t-0", "disk on fire")

    with caplog.at_level(logging.ERROR):
        bench.run_for(35, bench.task(broken, name="kafka-log-flusher"))
    statistics = bench.background.statistics()["kafka-log-flusher"]
    assert (statistics.runs, statistics.failures) == (4, 4)
    assert "disk on fire" in caplog.text
    assert "'kafka-log-flusher'" in caplog.text


def test_s_time_1_a_bug_in_a_task_ends_everything(bench: Bench) -> None:
    def broken() -> None:
        raise LookupError("not foreseen")

    with pytest.raises(ExceptionGroup) as raised:
        bench.run_for(35, bench.task(broken), bench.task(name="another"))
    assert raised.group_contains(LookupError, match="not foreseen")
    assert len(bench.runs) <= 2


def test_a_run_that_takes_longer_than_its_period_is_followed_by_the_next_at_once(
    bench: Bench,
) -> None:
    def wait_for_the_disk() -> None:
        bench._timeline.now += 25  # as if a thread had taken so long

    async def run() -> None:
        bench.runs.append(bench.clock.monotonic())
        await call(wait_for_the_disk)

    bench.run_for(60, Task(name="slow", initial_delay_ms=0, period_ms=10_000, run=run))
    assert bench.runs == [0, 25, 50]
    assert bench.background.statistics()["slow"].longest_s == 25


def test_s_start_4_states_have_kafkas_values() -> None:
    assert [int(state) for state in BrokerState] == [0, 1, 2, 3, 6, 7]
    gauge = BrokerStateGauge()
    seen: list[BrokerState] = []
    gauge.listeners.append(seen.append)
    gauge.move_to(BrokerState.STARTING)
    gauge.move_to(BrokerState.STARTING)
    gauge.move_to(BrokerState.RUNNING_AS_BROKER)
    assert seen == [BrokerState.STARTING, BrokerState.RUNNING_AS_BROKER]
    assert gauge.state is BrokerState.RUNNING_AS_BROKER
