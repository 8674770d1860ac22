"""Runs work (`storage.waits`) in virtual time, without trio; chance decides what comes first.

Everything is an entry of one heap. A pause takes a moment, a call in a thread somewhat longer; its
effects come in between. So the same seed gives the same run, and another one another order.
"""

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from storage.waits import Call, Pause, Together, Until, Wait, Work

Done = Callable[[Any, BaseException | None], object]
"""Called with the result of work, or with its error."""


class Task:
    """One piece of work under way, of which the loop calls `step`."""

    def __init__(self, loop: "Timers", work: Work[Any], done: Done) -> None:
        self.loop = loop
        self.work = work
        self.done = done
        self.dead = False

    def kill(self) -> None:
        """Its process is gone: it does nothing any more, not even clean up."""
        self.dead = True

    def __del__(self) -> None:
        self.work.close()  # else Python warns of work that never began

    def step(self, answer: Any = None, error: BaseException | None = None) -> None:
        if self.dead:
            return
        try:
            wait = self.work.send(answer) if error is None else self.work.throw(error)
        except StopIteration as end:
            self.dead = True
            self.done(end.value, None)
        except Exception as failure:  # noqa: BLE001 - it belongs to the one that waits
            self.dead = True
            self.done(None, failure)
        else:
            self._serve(wait)

    def _serve(self, wait: Wait) -> None:
        loop = self.loop
        if isinstance(wait, Pause):
            loop.at(loop.moment(), self.step)
        elif isinstance(wait, Call):
            loop.at(loop.moment(), lambda: self._call(wait))
        elif isinstance(wait, Until):
            self._until(wait)
        elif isinstance(wait, Together):
            self._together(wait)
        else:
            raise TypeError(wait)

    def _call(self, wait: Call[Any]) -> None:
        if self.dead:
            return
        try:
            answer, failure = wait.work(*wait.values), None
        except Exception as error:  # noqa: BLE001 - it belongs to the work
            answer, failure = None, error
        self.loop.at(5 * self.loop.moment(), lambda: self.step(answer, failure))

    def _until(self, wait: Until[Any]) -> None:
        loop, signal = self.loop, wait.signal
        gone_on = False

        def go_on() -> None:
            nonlocal gone_on
            if not gone_on:
                gone_on = True
                signal.wake = None
                loop.at(loop.moment(), self.step)

        if signal.fired:
            go_on()
            return
        signal.wake = go_on
        if wait.seconds is not None:
            loop.at(max(wait.seconds, 0.0), go_on)

    def _together(self, wait: Together) -> None:
        left = len(wait.works)
        failures: list[BaseException] = []

        def one_done(_: Any, error: BaseException | None) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                failures.append(error)
            if not left:
                self.step(None, failures[0] if failures else None)

        for work in wait.works:
            self.loop.at(self.loop.moment(), Task(self.loop, work, one_done).step)


class Timers:
    """The time, and the things that will happen in it."""

    def __init__(self, random: Random, now: float = 0.0) -> None:
        self.now = now
        self.random = random
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(self.now * 1000)

    def moment(self) -> float:
        """A few microseconds to a millisecond."""
        return self.random.random() ** 3 * 1e-3

    def at(self, delay: float, what: Callable[[], object]) -> None:
        """Do `what` in `delay` seconds."""
        self._number += 1
        heapq.heappush(self._heap, (self.now + delay, self._number, what))

    def _move_until(self, end: float) -> bool:
        """Move to the next thing that happens until `end`, and do it; False if there is none."""
        if not self._heap or self._heap[0][0] > end:
            return False
        self.now, _, what = heapq.heappop(self._heap)
        what()
        return True


class Loop(Timers):
    """Takes its work as far as it comes in some seconds."""

    def start(self, work: Work[Any], done: Callable[[Any], object] | None = None) -> Task:
        """Begin `work`, soon. Its error ends the run."""

        def ended(result: Any, error: BaseException | None) -> None:
            if error is not None:
                raise error
            if done is not None:
                done(result)

        task = Task(self, work, ended)
        self.at(self.moment(), task.step)
        return task

    def run(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = self.now + seconds
        while self._move_until(end):
            pass
        self.now = end
