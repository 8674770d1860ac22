"""Opens all logs at start-up: in workers, with a line in the log every so often.

Each log directory has `num.recovery.threads.per.data.dir` workers (S-REC-8). What they open nobody
else knows yet; the manager takes it over on the loop when all are done.
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

LONG_S: Final = 3.0
"""A start that takes longer syncs what it recovers and writes down how far it has come, every so
often: should it be killed, the next one goes on there. A shorter one leaves that to the flusher."""

CLEAN_LOGS_AT_A_TIME: Final = 32
"""After a clean stop a log is opened in as much time as a hop to a thread takes, so that a worker
is given several. A log that has to be recovered may take minutes: it is given alone."""


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
            nursery.start_soon(self._write_down)
            async with trio.open_nursery() as openers:
                for queue in self._queues.values():
                    for _ in range(min(self._threads_per_dir, len(queue))):
                        openers.start_soon(self._open, queue)
            nursery.cancel_scope.cancel()

    async def _open(self, queue: deque[LoadJob]) -> None:
        while queue:
            jobs = [queue.popleft() for _ in range(self._share_of(queue))]
            for job in jobs:
                job.sync = self._takes_long
            outcomes = await self._workers.in_thread(_run_all, jobs, limiter=self._limiter)
            for job, outcome in zip(jobs, outcomes, strict=True):
                job.complete(outcome)
            self._done += len(jobs)

    def _share_of(self, queue: deque[LoadJob]) -> int:
        """How many logs a worker takes; few at the end, so that no worker is long alone."""
        if not queue[0].clean:  # and so is its whole directory
            return 1
        return max(1, min(CLEAN_LOGS_AT_A_TIME, len(queue) // (4 * self._threads_per_dir)))

    async def _write_down(self) -> None:
        """Ended by its caller: what it is at is waited for, as it must not come after the end."""
        while True:
            await self._clock.sleep(LONG_S)
            self._takes_long = True
            await perform_all(self._workers, self._manager.checkpoint_loading())

    async def _report(self) -> None:
        while True:
            await self._clock.sleep(PROGRESS_S)
            logger.info("Loading logs: %d of %d done", self._done, self._all)


def _run_all(jobs: Sequence[LoadJob]) -> list[Log | OSError]:
    return [job.run() for job in jobs]
