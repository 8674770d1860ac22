"""Opens all logs at start-up: in workers, with a line in the log every so often.

Each log directory has `num.recovery.threads.per.data.dir` workers (S-REC-8). A worker is given a
few logs at a time and opens them without looking at anything else; the manager takes them over on
the loop when all are done.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

import trio

from broker.world.clock import Clock
from broker.world.workers import Workers
from storage.log_loading import LoadJob, TopicConfigs
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

PROGRESS_S: Final = 5.0
MOST_AT_A_TIME: Final = 32
"""A hop to a thread costs as much as opening a log, and the last worker should not be long
alone."""


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
        await _Opening(jobs, threads_per_dir, clock, workers).run()
    manager.finish_loading()
    logger.info("Loaded %d logs in %dms", len(jobs), (clock.monotonic() - begin) * 1000)


class _Opening:
    """All jobs, on their way through the workers."""

    def __init__(
        self, jobs: Sequence[LoadJob], threads_per_dir: int, clock: Clock, workers: Workers
    ) -> None:
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
            async with trio.open_nursery() as openers:
                for queue in self._queues.values():
                    for _ in range(min(self._threads_per_dir, len(queue))):
                        openers.start_soon(self._open, queue)
            nursery.cancel_scope.cancel()

    async def _open(self, queue: deque[LoadJob]) -> None:
        while queue:
            some = [queue.popleft() for _ in range(self._share_of(len(queue)))]
            await self._workers.in_thread(_run_all, some, limiter=self._limiter)
            self._done += len(some)

    def _share_of(self, left: int) -> int:
        """How many logs a worker takes: one, when few are left and each may be long."""
        return max(1, min(MOST_AT_A_TIME, left // (4 * self._threads_per_dir)))

    async def _report(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            logger.info("Loading logs: %d of %d done", self._done, self._all)


def _run_all(jobs: Sequence[LoadJob]) -> None:
    for job in jobs:
        job.run()
