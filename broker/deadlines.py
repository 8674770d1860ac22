"""Timers: callbacks that run at some time unless they are cancelled before.

The whole broker has one heap and one task that sleeps until the earliest entry: a parked fetch, a
group member's session and a rebalance's delay cost an entry each and no task. Rules:

* Callbacks are plain functions, run on the event loop one after the other; they must not block.
  If ten thousand are due together, other tasks run between two of them (`PAUSE`).
* A cancelled handle drops its callback at once, so that the heap keeps no finished request alive.
  Its entry leaves the heap at its deadline, or when more than half of the heap is dead.
* A callback that raises is a bug: it ends `run`, and so the broker. Otherwise requests that were
  parked behind that timer would wait for ever in a broker that seems to run.
* A callback may schedule another; that one never runs in the same `run_due`, so a timer that
  schedules itself without delay cannot lock up the loop.

Time comes from the injected clock: tests move a manual clock and call `run_due` themselves; only
the broker starts `run`. The purgatories and the coordinators use it.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from broker.world.clock import TaskClock
from broker.world.loop_watch import NOTED_S, LoopWatch, name_of
from storage.waits import PAUSE, Signal

_COMPACT_FROM = 64
"""The heap is not rebuilt for this many dead entries or fewer."""


class Handle:
    """One scheduled callback."""

    __slots__ = ("_callback", "_deadlines", "_queued", "deadline")

    def __init__(
        self, deadlines: "Deadlines", deadline: float, callback: Callable[[], object]
    ) -> None:
        self._deadlines = deadlines
        self._callback: Callable[[], object] | None = callback
        self._queued = True
        self.deadline = deadline
        """Monotonic seconds at which it is due."""

    @property
    def active(self) -> bool:
        """Whether it has neither fired nor been cancelled yet."""
        return self._callback is not None

    def cancel(self) -> bool:
        """Cancel the callback. Return False if it has fired or was cancelled before."""
        if self._callback is None:
            return False
        self._callback = None
        if self._queued:
            self._deadlines._note_cancelled()
        return True

    def _take(self) -> Callable[[], object] | None:
        callback, self._callback = self._callback, None
        return callback


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlinesStatistics:
    """Numbers for metrics and tests."""

    active: int
    """Timers that have neither fired nor been cancelled."""
    fired: int
    """Callbacks run since the start."""


class Deadlines:
    """A heap of timers."""

    def __init__(self, clock: TaskClock, watch: LoopWatch | None = None) -> None:
        """`watch` is notified of callbacks that hold the loop for long."""
        self._clock = clock
        self._watch = watch or LoopWatch(clock)
        self._heap: list[tuple[float, int, Handle]] = []
        self._due: deque[Handle] = deque()
        """Taken out of the heap, to be fired in this order."""
        self._sequence = 0
        self._cancelled = 0
        self._fired = 0
        self._asleep_until = -math.inf
        self._wake: Signal[None] | None = None

    def schedule(self, delay_s: float, callback: Callable[[], object]) -> Handle:
        """Run `callback` in `delay_s` seconds; zero or less means at the next `run_due`."""
        deadline = self._clock.monotonic() + delay_s
        handle = Handle(self, deadline, callback)
        self._sequence += 1
        heapq.heappush(self._heap, (deadline, self._sequence, handle))
        if deadline < self._asleep_until and self._wake is not None:
            self._asleep_until = -math.inf
            self._wake.fire()
        return handle

    def soon(self, callback: Callable[[], object]) -> None:
        """Run `callback` soon, but not within the caller."""
        self.schedule(0, callback)

    async def wait_until(self, deadline: float) -> None:
        """Wait until `deadline`, in monotonic seconds; costs a timer and no task."""
        await self.sleep(deadline - self._clock.monotonic())

    async def sleep(self, delay_s: float) -> None:
        """Wait for `delay_s` seconds; zero or less until the next `run_due`. As `wait_until`."""
        reached: Signal[None] = Signal()
        handle = self.schedule(delay_s, reached.fire)
        try:
            await reached
        finally:
            handle.cancel()

    def next_deadline(self) -> float | None:
        """The deadline of the earliest timer, monotonic seconds; None if there is no timer."""
        heap = self._heap
        while heap and not heap[0][2].active:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else None

    def run_due(self) -> int:
        """Run every callback that is due, earliest first; return how many were run.

        Raises what a callback raises; the callbacks after it stay due.
        """
        self._take_due()
        before = self._fired
        while self._due:
            self._fire_next()
        return self._fired - before

    def _take_due(self) -> None:
        now = self._clock.monotonic()
        heap = self._heap
        while heap and heap[0][0] <= now:
            handle = heapq.heappop(heap)[2]
            if handle.active:
                handle._queued = False
                self._due.append(handle)
            else:
                self._cancelled -= 1

    def _fire_next(self) -> None:
        callback = self._due.popleft()._take()
        if callback is not None:  # else an earlier callback of this round has cancelled it
            self._fired += 1
            began = self._clock.monotonic()
            callback()
            ended = self._clock.monotonic()
            if ended - began >= NOTED_S:
                self._watch.note(began, ended, lambda: f"the timer {name_of(callback)}")

    async def run(self) -> None:
        """Fire timers until ended. The server starts it, once."""
        while True:
            self._take_due()
            while self._due:
                self._fire_next()
                await PAUSE
            deadline = self.next_deadline()
            self._wake = Signal()
            self._asleep_until = math.inf if deadline is None else deadline
            if deadline is None:
                await self._wake
            else:
                await self._wake.within(deadline - self._clock.monotonic())

    def statistics(self) -> DeadlinesStatistics:
        """A snapshot."""
        return DeadlinesStatistics(
            active=len(self._heap) - self._cancelled + len(self._due), fired=self._fired
        )

    def _note_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > _COMPACT_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].active]
            heapq.heapify(self._heap)
            self._cancelled = 0
