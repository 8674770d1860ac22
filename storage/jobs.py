"""Work that may wait for the disk, cut so that nothing the event loop owns is touched elsewhere.

A job has three parts, in the order of its life:

    job = log.begin_flush()         begin: on the loop. Values are taken: paths, bytes, numbers
    result = job.run()              run: anywhere (here, a thread). Sees those values and no more
    following = job.complete(result)    complete: on the loop. Installs the result, or throws it
                                        away when what it was made from has changed meanwhile

`run` returns disk trouble as a part of its result; what it raises is a bug. `complete` may return
another job, for work of more than one step (write a file, rename it, sync its directory): then that
one is run next. Once `run` was begun, `complete` is called: a job is never cancelled half-way.

Who has both hands on the logs (tests, tools, a start that serves nobody yet) calls `perform`; the
broker runs jobs through `broker.world.workers`.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from storage.errors import StorageError

Result = TypeVar("Result")


class Job(Protocol[Result]):
    """One piece of work that was begun on the loop: to be run anywhere, then completed there."""

    def run(self) -> Result:
        """The part that may block. On values of its own, in any thread, once."""
        ...

    def complete(self, result: Result, /) -> "Job[Any] | None":
        """On the loop, after `run`. Returns what is to be run next. Raises StorageError."""
        ...


Step = Job[Any] | Sequence[Job[Any]] | None
"""A job; several that may run side by side; or nothing: others may have their turn."""

Steps = Generator[Step, None, int | None]
"""Work as a generator that is advanced on the loop only.

Each step is complete before the next is asked for. Returns the milliseconds until the task wants to
run again, None for its period.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work that is done again and again. Times are milliseconds."""

    name: str
    """For logs and metrics: Kafka's where Kafka has such a task."""
    initial_delay_ms: int
    period_ms: int
    """From the start of one run to the next, unless the run said otherwise."""
    run: Callable[[], Steps]
    hurry: Callable[[Callable[[], None]], None] | None = None
    """Handed a function that ends the wait for the next run; called on the loop, as often as one
    likes."""
    foreseen: tuple[type[Exception], ...] = (StorageError,)
    """What may go wrong: it is logged, and the task runs again. Anything else is a bug, which stops
    the broker (S-TIME-1)."""


class Watched:
    """A job, and what is to be done on the loop when its last step is complete.

    `failed` is told a StorageError of any step, which then goes no further; `done` is called when
    there was none.
    """

    __slots__ = ("_done", "_failed", "_job")

    def __init__(
        self,
        job: Job[Any],
        *,
        done: Callable[[], None] | None = None,
        failed: Callable[[StorageError], None] | None = None,
    ) -> None:
        self._job = job
        self._done = done
        self._failed = failed

    def run(self) -> Any:
        """See `Job`."""
        return self._job.run()

    def complete(self, result: Any, /) -> "Watched | None":
        """See `Job`."""
        try:
            following = self._job.complete(result)
        except StorageError as error:
            if self._failed is None:
                raise
            self._failed(error)
            return None
        if following is not None:
            return Watched(following, done=self._done, failed=self._failed)
        if self._done is not None:
            self._done()
        return None


def perform(job: Job[Any] | None) -> None:
    """Begin to end, here and now."""
    while job is not None:
        job = job.complete(job.run())


def perform_all(steps: Steps) -> int | None:
    """All steps of a task, here and now; what the task returns."""
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                returned: int | None = end.value
                return returned
            jobs = step if isinstance(step, Sequence) else (step,)
            for job in jobs:
                perform(job)
    finally:
        steps.close()
