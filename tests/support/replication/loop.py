"""A driver of the house's waits in virtual time, in which chance decides what comes first.

Everything is an entry of one heap. A pause takes a moment, a call in a thread somewhat longer; what
it does happens in between. So the same seed gives the same run, and another one another order.
"""

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

from storage.waits import Call, Pause, Together, Until, Wait, Work


class Task:
    """One piece of work under way."""

    def __init__(self, loop: "Loop", work: Work[Any], done: Callable[[Any], object] | None) -> None:
        self.loop = loop
        self.work = work
        self.done = done
        self.dead = False

    def kill(self) -> None:
        """Its process is gone: it does nothing any more, not even clean up."""
        self.dead = True

    def __del__(self) -> None:
        self.work.close()  # else Python warns of work that never began

    def step(self, answer: Any = None, error: Exception | None = None) -> None:
        if self.dead:
            return
        try:
            wait = self.work.send(answer) if error is None else self.work.throw(error)
        except StopIteration as end:
            self.dead = True
            if self.done is not None:
                self.done(end.value)
            return
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

        def one_done(_: Any) -> None:
            nonlocal left
            left -= 1
            if not left:
                self.step()

        for work in wait.works:
            self.loop.start(work, one_done)


class Loop:
    """The time, and what happens next."""

    def __init__(self, random: Random) -> None:
        self.now = 0.0
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

    def start(self, work: Work[Any], done: Callable[[Any], object] | None = None) -> Task:
        """Begin `work`, soon."""
        task = Task(self, work, done)
        self.at(self.moment(), task.step)
        return task

    def run(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = self.now + seconds
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, what = heapq.heappop(heap)
            what()
        self.now = end
