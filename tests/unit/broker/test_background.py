"""Background tasks in virtual time."""

import logging
import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from broker.background import Background
from broker.broker_state import BrokerState, BrokerStateGauge
from broker.world.machine import MachineWorkers
from storage.jobs import Steps, Task


def at_once(run: Callable[[], int | None]) -> Callable[[], Steps]:
    """A task without jobs."""

    def steps() -> Steps:
        yield None
        return run()

    return steps


def background_of(threads: int) -> Background:
    return Background(threads=threads, workers=MachineWorkers())


def run_for(seconds: float, background: Background, *tasks: Task) -> None:
    async def main() -> None:
        with trio.move_on_after(seconds):
            await background.run(tasks)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def noting(runs: list[float], then: Callable[[], int | None] = lambda: None) -> Callable[[], None]:
    def run() -> int | None:
        runs.append(round(trio.current_time() - begin[0], 3) if begin else 0)
        return then()

    begin: list[float] = []

    def first() -> int | None:
        if not begin:
            begin.append(trio.current_time())
        return run()

    return first  # type: ignore[return-value]


def test_s_time_1_first_run_after_the_initial_delay_then_every_period() -> None:
    runs: list[float] = []
    task = Task(name="t", initial_delay_ms=30_000, period_ms=60_000, run=at_once(noting(runs)))
    run_for(29, background_of(1), task)
    assert runs == []
    run_for(30 + 180 + 1, background_of(1), task)
    assert runs == [0, 60, 120, 180]


def test_s_time_1_a_task_that_throws_is_logged_and_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> None:
        raise OSError("disk on fire")

    background = background_of(1)
    with caplog.at_level(logging.ERROR):
        run_for(
            35,
            background,
            Task(name="broken", initial_delay_ms=0, period_ms=10_000, run=at_once(broken)),
        )
    statistics = background.statistics().tasks["broken"]
    assert (statistics.runs, statistics.failures) == (4, 4)
    assert "disk on fire" in caplog.text
    assert "'broken'" in caplog.text


def test_s_time_1_a_task_may_say_when_it_wants_to_run_next() -> None:
    runs: list[float] = []
    task = Task(
        name="kafka-delete-logs",
        initial_delay_ms=0,
        period_ms=1,
        run=at_once(noting(runs, lambda: 5000 * len(runs))),
    )
    run_for(31, background_of(1), task)
    assert runs == [0, 5, 15, 30]


class NotingJob:
    def __init__(self, threads: dict[str, int]) -> None:
        self.threads = threads

    def run(self) -> None:
        self.threads["run"] = threading.get_ident()

    def complete(self, result: None, /) -> None:
        self.threads["complete"] = threading.get_ident()


def test_jobs_run_in_a_thread_and_their_steps_on_the_loop() -> None:
    threads: dict[str, int] = {}

    def steps() -> Steps:
        threads["begin"] = threading.get_ident()
        yield NotingJob(threads)
        threads["end"] = threading.get_ident()
        return None

    async def main() -> None:
        task = Task(name="t", initial_delay_ms=0, period_ms=10**9, run=steps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(background_of(2).run, [task])
            with trio.fail_after(5):
                while "end" not in threads:
                    await trio.sleep(0.001)
            nursery.cancel_scope.cancel()

    trio.run(main)
    here = threading.get_ident()
    assert threads.pop("run") != here
    assert threads == {"begin": here, "complete": here, "end": here}


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
