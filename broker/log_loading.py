"""Opens all logs at start-up: in threads, with a line in the log every so often.

Each log directory has `num.recovery.threads.per.data.dir` threads (S-REC-8). Nothing else uses the
logs meanwhile, so the threads may open them; the manager takes them over on the loop at the end.
"""

import logging
from collections import deque

import trio

from storage.clock import Clock
from storage.log_loading import LoadJob, TopicConfigs
from storage.log_manager import LogManager

logger = logging.getLogger(__name__)

PROGRESS_S = 5.0


async def load_all_logs(
    manager: LogManager, topic_configs: TopicConfigs, *, threads_per_dir: int, clock: Clock
) -> None:
    """Returns when every log is open, or its directory is offline. Raises StorageError."""
    begin = clock.monotonic()
    jobs = manager.load_jobs(topic_configs)
    if jobs:
        await _run_jobs(jobs, threads_per_dir)
    manager.finish_loading()
    logger.info("Loaded %d logs in %dms", len(jobs), (clock.monotonic() - begin) * 1000)


async def _run_jobs(jobs: list[LoadJob], threads_per_dir: int) -> None:
    by_directory: dict[str, deque[LoadJob]] = {}
    for job in jobs:
        by_directory.setdefault(job.log_dir, deque()).append(job)
    limiter = trio.CapacityLimiter(threads_per_dir * len(by_directory))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_report, jobs)
        async with trio.open_nursery() as workers:
            for queue in by_directory.values():
                for _ in range(min(threads_per_dir, len(queue))):
                    workers.start_soon(_work, queue, limiter)
        nursery.cancel_scope.cancel()


async def _work(queue: deque[LoadJob], limiter: trio.CapacityLimiter) -> None:
    def run() -> None:
        while True:
            try:
                job = queue.popleft()
            except IndexError:
                return
            job.run()

    try:
        await trio.to_thread.run_sync(run, limiter=limiter, abandon_on_cancel=False)
    except BaseException:
        queue.clear()  # the other threads end after the log they are at
        raise


async def _report(jobs: list[LoadJob]) -> None:
    while True:
        await trio.sleep(PROGRESS_S)
        done = sum(job.log is not None or job.error is not None for job in jobs)
        logger.info("Loading logs: %d of %d done", done, len(jobs))
