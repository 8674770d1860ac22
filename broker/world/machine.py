"""`Workers` of a real machine: threads for work that waits, child processes for work that computes.

A child process (`broker.world.child`) is started by the first work for it (a broker that cleans
nothing has none), runs at a low priority, and stays.

Machinery that fails is retried here, where nothing of the work is lost by it: work for the shared
child is done again in another one, and work for which no thread can be started is done on the loop.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio

from broker.world.child import Child
from broker.world.workers import DedicatedWorker, ThreadWorker, WorkerDied

Result = TypeVar("Result")

NICE: Final = 10
"""Priority of the shared child: below the broker itself, as only some requests wait for it."""
LOWEST: Final = 19
"""Priority of a dedicated child: below the others, as no request waits for it."""
MOST_MEMORY: Final = 1 << 30
"""Bytes of the shared child. Its work is bounded by counting (`docs/limits.md`) and takes a quarter
of this; if the count is wrong, the child has to give up, not the broker."""

logger = logging.getLogger(__name__)


class MachineWorkers:
    """`Workers` with the threads of trio and one shared child process."""

    def __init__(self, *, dedicated_in_threads: bool = False) -> None:
        """`dedicated_in_threads`: dedicated workers are given memory of this process."""
        self._dedicated_in_threads = dedicated_in_threads
        self._child = Child(self, nice=NICE, most_memory=MOST_MEMORY)
        self._free = trio.CapacityLimiter(1)

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """See `Workers`. Without a `limiter`, trio's default one applies."""
        is_begun = False

        def run() -> Result:
            nonlocal is_begun
            is_begun = True
            return work(*values)

        try:
            return await trio.to_thread.run_sync(run, limiter=limiter)
        except RuntimeError as error:
            if is_begun:
                raise
            logger.warning("Work for a thread holds up the event loop: %s", error)
        return work(*values)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`. Raises WorkerDied when a second child has failed, too."""
        async with self._free:
            try:
                return await self._child.call(work, *values)
            except WorkerDied as error:
                logger.warning("Work of a child process is done again by another one: %s", error)
            return await self._child.call(work, *values)

    def dedicated_worker(self) -> DedicatedWorker:
        """See `Workers`."""
        return ThreadWorker(self) if self._dedicated_in_threads else ProcessWorker(self)

    def close(self) -> None:
        """End the shared child; may be called at any time, from the loop."""
        self._child.end()


class ProcessWorker:
    """A `DedicatedWorker` that is a child process of its own."""

    def __init__(self, workers: MachineWorkers) -> None:
        self._child = Child(workers, nice=LOWEST, keeps_state=True)

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `DedicatedWorker`."""
        return await self._child.call(work, *values)

    def close(self) -> None:
        """See `DedicatedWorker`."""
        self._child.end()
