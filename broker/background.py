"""The background work of a broker: what runs every so often (Kafka's KafkaScheduler).

A `Task` is a row of a table: name, when first, how often, what. A task marked `blocking` may wait
for the disk and runs in one of `background.threads` threads; the others change what the event loop
owns, are quick, and run on it. One task never runs twice at the same time. A period is counted from
the start of a run; a run that took longer is followed by the next at once.

A task that throws is logged and runs again (S-TIME-1). Time is trio's, so tests run hours in
milliseconds with a mock clock.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import trio

logger = logging.getLogger(__name__)


class Task(Protocol):
    """What `storage.log_tasks.Task` is; times in milliseconds."""

    @property
    def name(self) -> str:
        """For logs and metrics."""
        ...

    @property
    def initial_delay_ms(self) -> int:
        """From start-up to the first run."""
        ...

    @property
    def period_ms(self) -> int:
        """From the start of one run to the start of the next."""
        ...

    @property
    def run(self) -> Callable[[], int | None]:
        """The work; returns the milliseconds until its next run, or None for the period."""
        ...

    @property
    def blocking(self) -> bool:
        """Runs in a thread."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """A task of the broker's own rooms."""

    name: str
    period_ms: int
    run: Callable[[], int | None]
    initial_delay_ms: int = 0
    blocking: bool = False


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

    def __init__(self, *, threads: int) -> None:
        self._limiter = trio.CapacityLimiter(threads)
        self._statistics: dict[str, TaskStatistics] = {}

    def resize(self, threads: int) -> None:
        """Have at most so many threads from now on."""
        self._limiter.total_tokens = threads

    async def run(self, tasks: Iterable[Task]) -> None:
        """All of them, for ever. A blocking run that is under way is waited for at the end."""
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
            if task.blocking:
                return await trio.to_thread.run_sync(task.run, limiter=self._limiter)
            await trio.lowlevel.checkpoint()
            return task.run()
        except Exception:
            statistics.failures += 1
            logger.exception("Uncaught exception in scheduled task '%s'", task.name)
            return None

    def statistics(self) -> BackgroundStatistics:
        """A snapshot."""
        return BackgroundStatistics(dict(self._statistics))
