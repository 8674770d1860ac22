"""Hands for work that must not be done on the event loop: it waits for a disk, or computes long.

Such work is always cut in three (`storage.jobs`): begun on the loop, run elsewhere on values of its
own, completed on the loop. `Workers` is the elsewhere: threads and child processes
(`broker.world.machine`), or right here (`InlineWorkers`), where nothing ever waits.

Which of the two: what waits for the kernel, or computes in C without the interpreter's lock, goes
to a thread; a loop in Python goes to a child process: in a thread it would take the loop's time.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import trio

from storage.jobs import Job, Steps

Result = TypeVar("Result")


class Workers(Protocol):
    """Neither call can be cancelled once the work was begun: its result is always delivered."""

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """Run `work(*values)`; its result or its exception. `limiter` bounds how many do so."""
        ...

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """Run a function of a module, with values and result that pickle, in a child process.

        Raises WorkerDied when the child ended before it had answered.
        """
        ...

    def hire(self) -> "Hand":
        """A child process of one's own, for work that keeps something between two calls."""
        ...


class Hand(Protocol):
    """One child process, with a `state` that lives there. One call at a time."""

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """Run `work(state, *values)` there, as `Workers.in_process`.

        The process is started by the first call. After a WorkerDied the next call gets a new one,
        with an empty state.
        """
        ...

    def close(self) -> None:
        """End the process, and its state with it; from the loop, as often as one likes. It is
        started again by another call."""
        ...


class WorkerDied(Exception):
    """A child process was killed, or could not be started; the work may be tried again."""


class InlineWorkers:
    """Everything here and now, at a checkpoint: for tests, simulations and disks in memory."""

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """See `Workers`; nothing runs beside it, so nothing is bounded."""
        await trio.lowlevel.checkpoint()
        return work(*values)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`."""
        await trio.lowlevel.checkpoint()
        return work(*values)

    def hire(self) -> "ThreadHand":
        """See `Workers`."""
        return ThreadHand(self)


class ThreadHand:
    """A `Hand` in this process, in whatever `workers` have for a thread.

    For disks in memory, which no other process can see, and where nothing runs elsewhere anyway.
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
    """A job from its run to its last completion. Not cancelled in between."""
    with trio.CancelScope(shield=True):
        while job is not None:
            job = job.complete(await workers.in_thread(job.run, limiter=limiter))


async def perform_all(
    workers: Workers, steps: Steps, limiter: trio.CapacityLimiter | None = None
) -> int | None:
    """All steps of a task; what it returns. Cancelled between steps: no further step is begun."""
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
    """All of them, whatever becomes of one; then the first failure is raised."""
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
