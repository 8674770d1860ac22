"""Runs work that must not run on the event loop, because it waits for a disk or computes long.

Such work has three parts (`storage.jobs`): begun on the loop, run elsewhere on its own values,
completed on the loop. `Workers` run the second part: in threads and child processes
(`broker.world.machine`), or at once (`InlineWorkers`) in worlds where nothing blocks.

A thread is for work that waits for the kernel, or computes in C without the interpreter's lock. A
loop in Python needs a child process: in a thread it would take the event loop's time.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import trio

from storage.jobs import Job, Steps

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

    def hire(self) -> "Hand":
        """Return a child process for the caller alone, for work that keeps state between calls."""
        ...

    def close(self) -> None:
        """End the shared child process, from the loop; the next work for it starts another."""
        ...


class Hand(Protocol):
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

    def hire(self) -> "ThreadHand":
        """See `Workers`."""
        return ThreadHand(self)

    def close(self) -> None:
        """See `Workers`: nothing was started."""


class ThreadHand:
    """A `Hand` in this process, which calls `workers.in_thread`.

    For disks in memory, which another process cannot see, and for `InlineWorkers`.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._state: dict[str, Any] = {}

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Hand`."""
        return await self._workers.in_thread(work, self._state, *values)

    def close(self) -> None:
        """See `Hand`."""
        self._state = {}


async def perform(
    workers: Workers, job: Job[Any] | None, limiter: trio.CapacityLimiter | None = None
) -> None:
    """Run and complete a job, and the jobs that its completions return. Cannot be cancelled."""
    with trio.CancelScope(shield=True):
        while job is not None:
            job = job.complete(await workers.in_thread(job.run, limiter=limiter))


async def perform_all(
    workers: Workers, steps: Steps, limiter: trio.CapacityLimiter | None = None
) -> int | None:
    """Run all steps of a task; return what the generator returns.

    Cancellation takes effect between steps: no further step is begun.
    """
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                returned: int | None = end.value
                return returned
            if isinstance(step, Sequence):
                await _side_by_side(workers, step, limiter)
            elif step is not None:
                await perform(workers, step, limiter)
            await trio.lowlevel.checkpoint()
    finally:
        steps.close()


async def _side_by_side(
    workers: Workers, jobs: Sequence[Job[Any]], limiter: trio.CapacityLimiter | None
) -> None:
    """Run all jobs at once, to their ends even if one fails; then raise the first failure."""
    failures: list[Exception] = []

    async def one(job: Job[Any]) -> None:
        try:
            await perform(workers, job, limiter)
        except Exception as error:  # noqa: BLE001 - raised below, when the others are done
            failures.append(error)

    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(one, job)
    if failures:
        raise failures[0]
