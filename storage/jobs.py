"""Work that may wait for the disk, cut so that only the event loop touches what the loop owns.

A job has three parts, in the order of its life:

    job = log.begin_flush()         begin: on the loop. Takes values: paths, bytes, numbers
    result = job.run()              run: anywhere, mostly in a thread. Uses those values only
    following = job.complete(result)    complete: on the loop. Installs the result, or drops it
                                        when what it was made from has changed meanwhile

`run` returns disk errors as part of its result; what it raises is a bug. `complete` may return
another job, for work of more than one step (write a file, rename it, sync its directory): then that
one is run next. Once `run` has begun, `complete` will be called: a job is never cancelled half-way.

A caller that is alone with the logs (tests, tools, a start that serves nobody yet) calls `perform`;
the broker runs jobs through `broker.world.workers`.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from storage.errors import StorageError

Result = TypeVar("Result")


class Job(Protocol[Result]):
    """One piece of work begun on the loop, run anywhere, and completed on the loop."""

    def run(self) -> Result:
        """Do the part that may block: in any thread, once, on the job's own values."""
        ...

    def complete(self, result: Result, /) -> "Job[Any] | None":
        """Take over the result, on the loop. Returns the job to run next. Raises StorageError."""
        ...


Step = Job[Any] | Sequence[Job[Any]] | None
"""A job; several that may run side by side; or None, to let other tasks have their turn."""

Steps = Generator[Step, None, int | None]
"""Work as a generator that is advanced on the loop only.

Each step is complete before the next is asked for. Returns the milliseconds until the task is to
run again, None for its period.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Periodic work. Times are milliseconds."""

    name: str
    """For logs and metrics: Kafka's where Kafka has such a task."""
    initial_delay_ms: int
    period_ms: int
    """From the start of one run to the next, unless the run said otherwise."""
    run: Callable[[], Steps]
    hurry: Callable[[Callable[[], None]], None] | None = None
    """Called once with a function that ends the wait for the next run. The task's owner calls that
    function on the loop, any number of times."""
    foreseen: tuple[type[Exception], ...] = (StorageError,)
    """Expected errors: they are logged, and the task runs again. Any other is a bug and stops the
    broker (S-TIME-1)."""


class Watched:
    """A job with callbacks, which are called on the loop.

    `failed` gets a StorageError of any step, which then goes no further; `done` is called after the
    last step if none failed.
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
    """Run a job and all that follow from it, here and now. Raises StorageError."""
    while job is not None:
        job = job.complete(job.run())


def perform_all(steps: Steps) -> int | None:
    """Run all steps of a task here and now; returns what the task returns. Raises StorageError."""
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
