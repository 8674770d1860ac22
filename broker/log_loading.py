"""Opens all logs at start-up: in threads, with a line in the log every so often.

Each log directory has `num.recovery.threads.per.data.dir` threads (S-REC-8). What they open nobody
else knows yet; the manager takes it over on the loop at the end.
"""

import logging
from collections import deque
from typing import Final

import trio

from broker.world.workers import Workers
from storage.clock import Clock
from storage.log.log import Log
from storage.log_loading import LoadJob, TopicConfigs
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

PROGRESS_S = 5.0

_CLEAN_LOGS_A_HOP: Final = 16
"""Opening a log after a clean stop takes less than a millisecond, and a thread hop a tenth of one.
A log that has to be recovered may take minutes: each has a hop of its own."""


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
        await _run_jobs(jobs, threads_per_dir, workers)
    manager.finish_loading()
    logger.info("Loaded %d logs in %dms", len(jobs), (clock.monotonic() - begin) * 1000)


async def _run_jobs(jobs: list[LoadJob], threads_per_dir: int, workers: Workers) -> None:
    by_directory: dict[str, deque[LoadJob]] = {}
    for job in jobs:
        by_directory.setdefault(job.log_dir, deque()).append(job)
    limiter = trio.CapacityLimiter(threads_per_dir * len(by_directory))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_report, jobs)
        async with trio.open_nursery() as loading:
            for queue in by_directory.values():
                for _ in range(min(threads_per_dir, len(queue))):
                    loading.start_soon(_work, queue, workers, limiter)
        nursery.cancel_scope.cancel()


async def _work(queue: deque[LoadJob], workers: Workers, limiter: trio.CapacityLimiter) -> None:
    while queue:
        jobs = [queue.popleft()]
        while jobs[0].clean and queue and len(jobs) < _CLEAN_LOGS_A_HOP:
            jobs.append(queue.popleft())
        outcomes = await workers.in_thread(_open, jobs, limiter=limiter)
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.complete(outcome)


def _open(jobs: list[LoadJob]) -> list[Log | OSError]:
    return [job.run() for job in jobs]


async def _report(jobs: list[LoadJob]) -> None:
    while True:
        await trio.sleep(PROGRESS_S)
        done = sum(job.is_done for job in jobs)
        logger.info("Loading logs: %d of %d done", done, len(jobs))
