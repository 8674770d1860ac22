"""Opens all logs at start-up in threads, and logs the progress every `PROGRESS_S`.

Each log directory has up to `num.recovery.threads.per.data.dir` threads (S-REC-8): one at first,
another whenever its logs take long. No other code knows the logs that they open until the manager
takes them over, on the loop, when all are open.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

import trio

from broker.world.clock import TaskClock
from broker.world.driver import Driver
from storage.log.log import Log
from storage.log_loading import LoadJob, TopicConfigs
from storage.log_manager import LogManager
from storage.waits import PAUSE, call

logger = logging.getLogger(__name__)

PROGRESS_S: Final = 5.0

QUICK_LOG_S: Final = 0.005
"""Seconds per log below which a second thread does not help. Opening a quick log is Python code
that reads small files, so a second thread would wait for the interpreter's lock: two threads take
1.4 times as long as one. A slower log waits for the disk, or for checksums of much data, and there
the second thread helps."""

LONG_S: Final = 0.5
"""A start that takes longer than this also syncs each log whose opening took `RECOVERED_S` or more,
as it had to be recovered. A shorter start leaves these logs to the flusher."""

RECOVERED_S: Final = 0.002
"""Twice the time that opening a synced log takes."""

WRITE_DOWN_EVERY_S: Final = 3.0
"""How often a long start checkpoints its progress; if it is killed, the next goes on there."""

LOOK_EVERY_S: Final = 0.05
"""A thread opens logs for this long before it reports them, because a hop to a thread may take as
long as opening a log. Also how often a directory is checked for the need of another thread."""

MOST_AT_A_TIME: Final = 256
"""The most logs that a thread opens before it reports them."""


async def load_all_logs(
    manager: LogManager,
    topic_configs: TopicConfigs,
    *,
    threads_per_dir: int,
    clock: TaskClock,
    driver: Driver,
) -> None:
    """Return when every log is open or its directory is offline. Raises StorageError."""
    begin = clock.monotonic()
    jobs = manager.load_jobs(topic_configs)
    if jobs:
        await _Opening(manager, jobs, threads_per_dir, clock, driver).run()
    manager.finish_loading()
    logger.info("Loaded %d logs in %dms", len(jobs), (clock.monotonic() - begin) * 1000)


class _Opening:
    """One run of all jobs through threads."""

    def __init__(
        self,
        manager: LogManager,
        jobs: Sequence[LoadJob],
        threads_per_dir: int,
        clock: TaskClock,
        driver: Driver,
    ) -> None:
        self._manager = manager
        self._takes_long = False
        self._all = len(jobs)
        self._done = 0
        self._clock = clock
        self._driver = driver
        self._threads_per_dir = threads_per_dir
        self._queues: dict[str, deque[LoadJob]] = {}
        for job in jobs:
            self._queues.setdefault(job.log_dir, deque()).append(job)
        self._limiter = trio.CapacityLimiter(threads_per_dir * len(self._queues))

    async def run(self) -> None:
        """Run all jobs. If cancelled, wait for the jobs that threads are running."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report)
            nursery.start_soon(self._keep_written_down)
            async with trio.open_nursery() as openers:
                for queue in self._queues.values():
                    openers.start_soon(self._have_opened, queue)
                    nursery.start_soon(self._send_more, queue, openers)
            nursery.cancel_scope.cancel()
        if self._takes_long:
            await self._write_down()

    async def _send_more(self, queue: deque[LoadJob], openers: trio.Nursery) -> None:
        """Start further threads for one directory, one at a time, while its logs take long."""
        for workers in range(1, self._threads_per_dir):
            is_quick = True
            while is_quick:
                left = len(queue)
                await self._clock.sleep(LOOK_EVERY_S)
                if not queue:
                    return
                is_quick = (left - len(queue)) * QUICK_LOG_S > workers * LOOK_EVERY_S
            openers.start_soon(self._have_opened, queue)

    async def _have_opened(self, queue: deque[LoadJob]) -> None:
        await self._driver.run(self._open(queue), limiter=self._limiter)

    async def _open(self, queue: deque[LoadJob]) -> None:
        while queue:
            for job, outcome in await call(self._open_some, queue):
                job.complete(outcome)
                self._done += 1
            await PAUSE

    def _open_some(self, queue: deque[LoadJob]) -> list[tuple[LoadJob, Log | OSError]]:
        """Open logs for `LOOK_EVERY_S`, at least one; runs in a thread."""
        end = self._clock.monotonic() + LOOK_EVERY_S
        done: list[tuple[LoadJob, Log | OSError]] = []
        while len(done) < MOST_AT_A_TIME and (not done or self._clock.monotonic() < end):
            try:
                job = queue.popleft()
            except IndexError:  # another worker has taken the last one
                break
            if self._takes_long:
                job.sync_above_s = RECOVERED_S
            done.append((job, job.run()))
        return done

    async def _keep_written_down(self) -> None:
        """Checkpoint the progress until cancelled; a write under way is finished first."""
        await self._clock.sleep(LONG_S)
        self._takes_long = True
        while True:
            await self._clock.sleep(WRITE_DOWN_EVERY_S)
            await self._write_down()

    async def _write_down(self) -> None:
        await self._driver.run(self._manager.checkpoint_loading())

    async def _report(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            logger.info("Loading logs: %d of %d done", self._done, self._all)
