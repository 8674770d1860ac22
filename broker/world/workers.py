"""Runs work that must not run on the event loop, because it waits for a disk or computes long.

Such work asks for a call (`storage.waits`), and `broker.world.driver` has the call made by
`Workers`: in threads and child processes (`broker.world.machine`), or at once (`InlineWorkers`) in
worlds where nothing blocks.

A thread is for work that waits for the kernel, or computes in C without the interpreter's lock. A
loop in Python needs a child process: in a thread it would take the event loop's time.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import trio

Result = TypeVar("Result")


class Workers(Protocol):
    """Runs work elsewhere; one per broker."""

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """Run `work(*values)` in a thread; return its result or raise its exception.

        `limiter` bounds how many calls run at once. Once the work has begun, the call cannot be
        cancelled: its result is always delivered.
        """
        ...

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """Run a function of a module in a child process; its values and result must pickle.

        Work that is cancelled ends in the middle, and may be done twice: it changes nothing. Raises
        what the work raises, and WorkerDied.
        """
        ...

    def dedicated_worker(self) -> "DedicatedWorker":
        """Return a child process for the caller alone, for work that keeps state between calls."""
        ...

    def close(self) -> None:
        """End the shared child process, from the loop; the next work for it starts another."""
        ...


class DedicatedWorker(Protocol):
    """One child process, with a `state` that lives there. One call at a time."""

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """Run `work(state, *values)` in the child; raises what the work raises, and WorkerDied.

        The first call starts the process. A call that is cancelled ends it. After that, and after
        a WorkerDied, the next call starts a new one, with an empty state.
        """
        ...

    def close(self) -> None:
        """End the process and its state, from the loop; safe to repeat. `call` starts a new one."""
        ...


class WorkerDied(Exception):
    """A child process was killed, could not be started, or had no memory: a failure of machinery.

    It says nothing of the disk or of the data, and the work may be tried again.
    """


class InlineWorkers:
    """Runs all work on the event loop, after a checkpoint: for tests, simulations and adoption."""

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """See `Workers`. `limiter` is ignored: the work blocks the loop, so only one call runs."""
        await trio.lowlevel.checkpoint()
        return work(*values)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`."""
        await trio.lowlevel.checkpoint()
        return work(*values)

    def dedicated_worker(self) -> "ThreadWorker":
        """See `Workers`."""
        return ThreadWorker(self)

    def close(self) -> None:
        """See `Workers`: nothing was started."""


class ThreadWorker:
    """A `DedicatedWorker` in this process, which calls `workers.in_thread`.

    For disks in memory, which another process cannot see, and for `InlineWorkers`.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._state: dict[str, Any] = {}

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `DedicatedWorker`."""
        return await self._workers.in_thread(work, self._state, *values)

    def close(self) -> None:
        """See `DedicatedWorker`."""
        self._state = {}
