"""The background work of a broker: what runs every so often (Kafka's KafkaScheduler).

A `Task` (`storage.jobs`) is a row of a table: name, when first, how often, what. What it does is a
generator that is advanced on the event loop; its jobs run in at most `background.threads` threads.
One task never runs twice at the same time. A period is counted from the start of a run; a run that
took longer is followed by the next at once.

A task that throws is logged and runs again (S-TIME-1). Time is trio's, so tests run hours in
milliseconds with a mock clock.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from broker.world.workers import Workers, perform_all
from storage.jobs import Task

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class TaskStatistics:
    """One task's numbers since the start."""

    runs: int = 0
    failures: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BackgroundStatistics:
    """By task name."""

    tasks: dict[str, TaskStatistics] = field(default_factory=dict)


class Background:
    """Runs tasks until it is cancelled."""

    def __init__(self, *, threads: int, workers: Workers) -> None:
        self._workers = workers
        self._limiter = trio.CapacityLimiter(threads)
        self._statistics: dict[str, TaskStatistics] = {}

    def resize(self, threads: int) -> None:
        """Have at most so many threads from now on."""
        self._limiter.total_tokens = threads

    async def run(self, tasks: Iterable[Task]) -> None:
        """All of them, for ever. A job that is under way is waited for at the end."""
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(self._repeat, task, name=task.name)

    async def _repeat(self, task: Task) -> None:
        statistics = self._statistics[task.name] = TaskStatistics()
        await trio.sleep(task.initial_delay_ms / 1000)
        while True:
            begin = trio.current_time()
            delay_ms = await self._run_once(task, statistics)
            took = trio.current_time() - begin
            statistics.runs += 1
            statistics.seconds += took
            statistics.longest_s = max(statistics.longest_s, took)
            if delay_ms is None:
                await trio.sleep_until(begin + task.period_ms / 1000)
            else:
                await trio.sleep(delay_ms / 1000)

    async def _run_once(self, task: Task, statistics: TaskStatistics) -> int | None:
        try:
            await trio.lowlevel.checkpoint()
            return await perform_all(self._workers, task.run(), self._limiter)
        except Exception:
            statistics.failures += 1
            logger.exception("Uncaught exception in scheduled task '%s'", task.name)
            return None

    def statistics(self) -> BackgroundStatistics:
        """A snapshot."""
        return BackgroundStatistics(dict(self._statistics))
