"""Periodic background work, as a row of a table.

`storage.log_manager` has such rows, `broker.background` runs them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from storage.errors import StorageError
from storage.waits import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Periodic work. Times are milliseconds."""

    name: str
    """For logs and metrics: Kafka's where Kafka has such a task."""
    initial_delay_ms: int
    period_ms: int
    """From the start of one run to the next, unless the run said otherwise."""
    run: Callable[[], Work[int | None]]
    """Returns the milliseconds until the task is to run again, None for its period."""
    hurry: Callable[[Callable[[], None]], None] | None = None
    """Called once with a function that ends the wait for the next run. The task's owner calls that
    function on the loop, any number of times."""
    foreseen: tuple[type[Exception], ...] = (StorageError,)
    """Expected errors: they are logged, and the task runs again. Any other is a bug and stops the
    broker (S-TIME-1)."""
