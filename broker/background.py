"""The periodic background work of a broker (Kafka's KafkaScheduler).

A `Task` (`storage.task`) is a row of a table: name, initial delay, period, function. It runs on the
event loop, and calls what may wait for the disk in one of `background.threads` threads. A task
never runs twice at the same time. Its period counts from the start of a run; a run that took longer
is followed by the next one at once.

An error that a task foresees (`Task.foreseen`, mostly a failing disk) is logged, and the task runs
again. Any other error is a bug: it ends `run`, and so the broker, which would otherwise seem to run
without that task (S-TIME-1).

A task with a `Task.hurry` may be woken before its period ends, when something waits for its run.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import trio

from broker.world.clock import TaskClock
from broker.world.driver import Driver
from storage.task import Task

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TaskStatistics:
    """One task's numbers since the start."""

    runs: int = 0
    failures: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0


class _Pause:
    """The pause between two runs of a task that may be woken early."""

    def __init__(self, clock: TaskClock) -> None:
        self._clock = clock
        self._ended = trio.Event()

    def end(self) -> None:
        """End this pause, or the next one if the task is running and may have missed the reason."""
        self._ended.set()

    async def sleep_until(self, deadline: float) -> None:
        """Return at `deadline`, monotonic seconds, or when `end` was called."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_at_end, nursery.cancel_scope)
            await self._clock.sleep_until(deadline)
            nursery.cancel_scope.cancel()
        self._ended = trio.Event()

    async def _cancel_at_end(self, scope: trio.CancelScope) -> None:
        await self._ended.wait()
        scope.cancel()


class Background:
    """Runs tasks until it is cancelled."""

    def __init__(self, *, threads: int, clock: TaskClock, driver: Driver) -> None:
        self._clock = clock
        self._driver = driver
        self._limiter = trio.CapacityLimiter(threads)
        self._statistics: dict[str, TaskStatistics] = {}

    def resize(self, threads: int) -> None:
        """Let at most `threads` calls run at once from now on."""
        self._limiter.total_tokens = threads

    async def run(self, tasks: Iterable[Task]) -> None:
        """Run the tasks until cancelled, which waits for calls under way.

        Raises any error that a task has not foreseen.
        """
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(self._repeat, task, name=task.name)

    async def _repeat(self, task: Task) -> None:
        clock = self._clock
        statistics = self._statistics[task.name] = TaskStatistics()
        sleep_until = clock.sleep_until
        if task.hurry is not None:
            pause = _Pause(clock)
            task.hurry(pause.end)
            sleep_until = pause.sleep_until
        await sleep_until(clock.monotonic() + task.initial_delay_ms / 1000)
        while True:
            begin = clock.monotonic()
            delay_ms = await self._run_once(task, statistics)
            took = clock.monotonic() - begin
            statistics.runs += 1
            statistics.seconds += took
            statistics.longest_s = max(statistics.longest_s, took)
            if delay_ms is None:
                await sleep_until(begin + task.period_ms / 1000)
            else:
                await sleep_until(clock.monotonic() + delay_ms / 1000)

    async def _run_once(self, task: Task, statistics: TaskStatistics) -> int | None:
        try:
            return await self._driver.run(
                task.run(), lambda: f"the background task {task.name}", self._limiter
            )
        except task.foreseen as error:
            statistics.failures += 1
            logger.error("Scheduled task '%s' failed and will run again: %s", task.name, error)
            return None

    def statistics(self) -> dict[str, TaskStatistics]:
        """The statistics of all tasks, by name."""
        return dict(self._statistics)
