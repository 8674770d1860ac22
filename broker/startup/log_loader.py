"""Opens all logs at start-up: in workers, with a line in the log every so often.

Each log directory has up to `num.recovery.threads.per.data.dir` workers (S-REC-8): one at first,
another whenever the logs take long. What they open nobody else knows yet; the manager takes it over
on the loop when all are done.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

import trio

from broker.world.clock import Clock
from broker.world.workers import Workers, perform_all
from storage.log.log import Log
from storage.log_loading import LoadJob, TopicConfigs
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

PROGRESS_S: Final = 5.0

QUICK_LOG_S: Final = 0.005
"""A log that takes less is opened by Python code that reads small files. A second thread would wait
for the interpreter's lock: two of them take 1.4 times as long as one. Logs that take longer wait
for the disk, or for checksums of much data, and there the second one helps."""

LONG_S: Final = 0.5
"""A start that takes longer syncs the logs that had to be recovered, if that took `RECOVERED_S`
each. A shorter one leaves that to the flusher."""

RECOVERED_S: Final = 0.002
"""Opening a log that was synced takes half of it."""

WRITE_DOWN_EVERY_S: Final = 3.0
"""And that often it writes down how far it has come: should it be killed, the next one goes on
there."""

LOOK_EVERY_S: Final = 0.05
"""For so long a worker opens logs before it says which (a log may take as much time as a hop to a
thread does), and that often a directory is asked whether it needs another worker."""

MOST_AT_A_TIME: Final = 256
"""Logs that a worker opens before it says so, however quick they are."""


async def load_all_logs(
    manager: LogManager,
    topic_configs: TopicConfigs,
    *,
    threads_per_dir: int,
    clock: Clock,
    workers: Workers,
) -> None:
    """Returns when every log is open, or its directory is offline. Raises StorageError."""
    begin = clock.monotonic()
    jobs = manager.load_jobs(topic_configs)
    if jobs:
        await _Opening(manager, jobs, threads_per_dir, clock, workers).run()
    manager.finish_loading()
    logger.info("Loaded %d logs in %dms", len(jobs), (clock.monotonic() - begin) * 1000)


class _Opening:
    """All jobs, on their way through the workers."""

    def __init__(
        self,
        manager: LogManager,
        jobs: Sequence[LoadJob],
        threads_per_dir: int,
        clock: Clock,
        workers: Workers,
    ) -> None:
        self._manager = manager
        self._takes_long = False
        self._all = len(jobs)
        self._done = 0
        self._clock = clock
        self._workers = workers
        self._threads_per_dir = threads_per_dir
        self._queues: dict[str, deque[LoadJob]] = {}
        for job in jobs:
            self._queues.setdefault(job.log_dir, deque()).append(job)
        self._limiter = trio.CapacityLimiter(threads_per_dir * len(self._queues))

    async def run(self) -> None:
        """Until the last one. Cancelled: what a worker is at is waited for."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report)
            nursery.start_soon(self._keep_written_down)
            async with trio.open_nursery() as openers:
                for queue in self._queues.values():
                    openers.start_soon(self._open, queue)
                    nursery.start_soon(self._send_more, queue, openers)
            nursery.cancel_scope.cancel()
        if self._takes_long:
            await self._write_down()

    async def _send_more(self, queue: deque[LoadJob], openers: trio.Nursery) -> None:
        """To a directory whose logs take long."""
        for workers in range(1, self._threads_per_dir):
            is_quick = True
            while is_quick:
                left = len(queue)
                await self._clock.sleep(LOOK_EVERY_S)
                if not queue:
                    return
                is_quick = (left - len(queue)) * QUICK_LOG_S > workers * LOOK_EVERY_S
            openers.start_soon(self._open, queue)

    async def _open(self, queue: deque[LoadJob]) -> None:
        while queue:
            done = await self._workers.in_thread(self._open_some, queue, limiter=self._limiter)
            for job, outcome in done:
                job.complete(outcome)
            self._done += len(done)

    def _open_some(self, queue: deque[LoadJob]) -> list[tuple[LoadJob, Log | OSError]]:
        """In a thread."""
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
        """Ended by its caller: what it is at is waited for, as it must not come after the end."""
        await self._clock.sleep(LONG_S)
        self._takes_long = True
        while True:
            await self._clock.sleep(WRITE_DOWN_EVERY_S)
            await self._write_down()

    async def _write_down(self) -> None:
        await perform_all(self._workers, self._manager.checkpoint_loading())

    async def _report(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            logger.info("Loading logs: %d of %d done", self._done, self._all)
