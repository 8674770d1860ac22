"""Runs work (`storage.waits`) side by side in virtual time, without trio: one step at a time.

The next step is chosen in order, or by a seed, among all that could be taken, so that a test can
try many orders and repeat one. Time moves when a test says so. Implements `Clock`.
"""

import math
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from storage.waits import Work
from tests.support.stepping import Done, Task, Timers

T = TypeVar("T")


class Scheduler(Timers):
    """A loop whose steps a test takes, and whose time it moves. See the module."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(Random(seed), now=1000.0)
        self._is_in_order = seed is None
        self._ready: list[Callable[[], object]] = []
        self.failures: list[BaseException] = []
        """Errors of work for which nobody waits."""

    def moment(self) -> float:
        """Return 0: pauses and calls take no time."""
        return 0.0

    def at(self, delay: float, what: Callable[[], object]) -> None:
        if delay:
            super().at(delay, what)
        else:
            self._ready.append(what)

    def begin(self, make: Callable[[], Work[None]]) -> None:
        """Run work beside the other."""

        def done(_: Any, error: BaseException | None) -> None:
            if error is not None:
                self.failures.append(error)

        self._begin(make(), done)

    def start(self, work: Work[T]) -> "list[T | BaseException]":
        """Run work beside the other; its result, or error, will be in the list."""
        outcome: list[T | BaseException] = []
        self._begin(work, lambda result, error: outcome.append(result if error is None else error))
        return outcome

    def _begin(self, work: Work[Any], done: Done) -> None:
        self.at(self.moment(), Task(self, work, done).step)

    def run(self, work: Work[T]) -> T:
        """Run work, and the other beside it, to its end; time moves when all wait for it."""
        outcome = self.start(work)
        while not outcome:
            if not self._step() and not self._move_until(math.inf):
                raise AssertionError("waits for nothing that comes")
        self._raise()
        result = outcome[0]
        if isinstance(result, BaseException):
            raise result
        return result

    def settle(self, steps: int = 1_000_000) -> None:
        """Run until everything waits for time or for the test."""
        while self._step():
            steps -= 1
            assert steps > 0, "never settles"
        self._raise()

    def advance(self, seconds: float) -> None:
        """Let time pass; things that are due happen."""
        until = self.now + seconds
        self.settle()
        while self._move_until(until):
            self.settle()
        self.now = max(self.now, until)

    def _raise(self) -> None:
        if self.failures:
            raise self.failures[0]

    def _step(self) -> bool:
        if not self._ready:
            return False
        index = 0 if self._is_in_order else self.random.randrange(len(self._ready))
        self._ready.pop(index)()
        return True
