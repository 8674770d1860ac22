"""Runs work (`storage.waits`) side by side in virtual time, without trio: one step at a time.

Which of those that could go on does so next is chosen in order, or by a seed, so that a test can
try many orders and repeat one. Time moves when a test says so. Implements `Clock`.
"""

import heapq
from collections.abc import Callable, Generator
from random import Random
from typing import Any, TypeVar

from storage.waits import Call, Pause, Together, Until, Wait, Work

T = TypeVar("T")


class _Task:
    def __init__(self, work: Work[Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.work = work
        self.done = done
        self.answer: Any = None
        self.error: Exception | None = None
        self.waits_for: Until[Any] | None = None


class Scheduler:
    """See the module."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = None if seed is None else Random(seed)
        self._ready: list[_Task] = []
        self._timers: list[tuple[float, int, _Task, Until[Any]]] = []
        self._count = 0
        self._now = 1000.0
        self.failures: list[BaseException] = []
        """Of work that nobody waits for."""

    # ------------------------------------------------------------------ Clock

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + round(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    # ------------------------------------------------------------------ work

    def begin(self, make: Callable[[], Work[None]]) -> None:
        """Run work beside the other."""

        def done(_: Any, error: BaseException | None) -> None:
            if error is not None:
                self.failures.append(error)

        self._ready.append(_Task(make(), done))

    def start(self, work: Work[T]) -> "list[T | BaseException]":
        """Run work beside the other; its result, or error, will be in the list."""
        outcome: list[T | BaseException] = []
        self._ready.append(
            _Task(work, lambda result, error: outcome.append(result if error is None else error))
        )
        return outcome

    def run(self, work: Work[T]) -> T:
        """Run work, and the other beside it, to its end; time moves when all wait for it."""
        outcome = self.start(work)
        while not outcome:
            if not self._step() and not self._move_to_next_timer():
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
        """Let time pass, and what is due happen."""
        until = self._now + seconds
        self.settle()
        while self._timers and self._timers[0][0] <= until:
            self._move_to_next_timer()
            self.settle()
        self._now = max(self._now, until)

    def _raise(self) -> None:
        if self.failures:
            raise self.failures[0]

    def _move_to_next_timer(self) -> bool:
        while self._timers:
            at, _, task, until = heapq.heappop(self._timers)
            if task.waits_for is until:
                self._now = max(self._now, at)
                self._wake(task, until)
                return True
        return False

    def _wake(self, task: _Task, until: Until[Any]) -> None:
        if task.waits_for is until:
            task.waits_for = None
            until.signal.wake = None
            self._ready.append(task)

    def _step(self) -> bool:
        if not self._ready:
            return False
        index = 0 if self._random is None else self._random.randrange(len(self._ready))
        task = self._ready.pop(index)
        try:
            if task.error is not None:
                error, task.error = task.error, None
                wait = task.work.throw(error)
            else:
                answer, task.answer = task.answer, None
                wait = task.work.send(answer)
        except StopIteration as end:
            task.done(end.value, None)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is for who waits
            task.done(None, failure)
        else:
            self._serve(task, wait)
        return True

    def _serve(self, task: _Task, wait: Wait) -> None:
        if isinstance(wait, Pause):
            self._ready.append(task)
        elif isinstance(wait, Call):
            try:
                task.answer = wait.work(*wait.values)
            except Exception as failure:  # noqa: BLE001 - for the work
                task.error = failure
            self._ready.append(task)
        elif isinstance(wait, Together):
            self._together(task, wait)
        elif isinstance(wait, Until):
            if wait.signal.fired:
                self._ready.append(task)
                return
            until = wait
            task.waits_for = until
            until.signal.wake = lambda: self._wake(task, until)
            if until.seconds is not None:
                self._count += 1
                heapq.heappush(self._timers, (self._now + until.seconds, self._count, task, until))
        else:
            raise TypeError(wait)

    def _together(self, task: _Task, wait: Together) -> None:
        left = len(wait.works)
        failures: list[BaseException] = []

        def done(_: Any, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                failures.append(error)
            if not left:
                task.error = failures[0] if failures else None  # type: ignore[assignment]
                self._ready.append(task)

        for work in wait.works:
            self._ready.append(_Task(work, done))


def pauses(count: int) -> Generator[Wait, None, None]:
    """Pauses: others get so many turns."""
    for _ in range(count):
        yield Pause()
