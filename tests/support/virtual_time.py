"""Virtual time: hours in milliseconds, and the same hours again from the same seed.

    timeline = Timeline()
    trio.run(main, clock=timeline)          inside: VirtualClock(timeline) for each broker

Time stands still while any task can run, and jumps to the next deadline when none can: in a world
without sockets and threads, only a deadline can wake a task then. So a run takes as long as its
work does, and the time shown depends on the work alone.

Each broker has a clock of its own on the timeline. Its wall time may be set, and the clock may be
stopped and started as a process is (SIGSTOP, SIGCONT): tasks that were due meanwhile wake late, all
at once.
"""

import heapq
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

START_WALL_MS: Final = 1_700_000_000_000
"""A day in November 2023, at which virtual time begins."""


class _Sleeper:
    """A task that waits for a time by some clock."""

    __slots__ = ("clock", "deadline", "task")

    def __init__(self, deadline: float, task: trio.lowlevel.Task, clock: "VirtualClock") -> None:
        self.deadline = deadline
        self.task: trio.lowlevel.Task | None = task
        """None: it was woken or cancelled."""
        self.clock = clock

    @property
    def is_dead(self) -> bool:
        """Whether its entry in the heap wakes nobody.

        The task was woken or cancelled, or its clock is stopped and adds a new entry in `go_on`.
        """
        return self.task is None or self.clock.is_stopped


class _Timeout:
    """A cancel scope that is among the timeouts of a clock while its block runs.

    A class, because a generator would be in a cycle with the error that cancelled the block, from
    Python 3.12 on.
    """

    def __init__(
        self, scope: trio.CancelScope, deadline: float, timeouts: dict[trio.CancelScope, float]
    ) -> None:
        self._scope = scope
        self._deadline = deadline
        self._timeouts = timeouts

    def __enter__(self) -> trio.CancelScope:
        self._timeouts[self._scope] = self._deadline
        return self._scope.__enter__()

    def __exit__(self, *error: Any) -> bool:
        del self._timeouts[self._scope]
        return self._scope.__exit__(*error)


class Timeline(trio.abc.Clock):
    """The time of one `trio.run`, in seconds. Moved by trio's loop only."""

    def __init__(self) -> None:
        self.now = 0.0
        # A heap of our own, because a cancel scope per sleeper would cost ten times as much.
        self._sleepers: list[tuple[float, int, _Sleeper]] = []
        self._number = 0

    def start_clock(self) -> None:
        """See `trio.abc.Clock`."""

    def current_time(self) -> float:
        """See `trio.abc.Clock`."""
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to `deadline` or to the earliest sleeper's; trio calls this when no task can run.

        See `trio.abc.Clock`.
        """
        sleepers = self._sleepers
        while sleepers and sleepers[0][2].is_dead:
            heapq.heappop(sleepers)
        following = min(deadline, sleepers[0][0]) if sleepers else deadline
        if following == math.inf:
            return following  # the end of the run, or a wait for a thread
        self.now = max(self.now, following)
        while sleepers and sleepers[0][0] <= self.now:
            sleeper = heapq.heappop(sleepers)[2]
            task = sleeper.task
            if task is not None and not sleeper.is_dead:
                sleeper.task = None
                trio.lowlevel.reschedule(task)
        return 0.0

    def put_to_sleep(self, sleeper: _Sleeper) -> None:
        """Wake the sleeper at its deadline, unless it is dead by then."""
        self._number += 1
        heapq.heappush(self._sleepers, (sleeper.deadline, self._number, sleeper))


class VirtualClock:
    """A `broker.world.clock.TaskClock` on a timeline."""

    def __init__(self, timeline: Timeline, *, wall_ms: int = START_WALL_MS) -> None:
        """`wall_ms` is the wall time at second 0 of the timeline."""
        self._timeline = timeline
        self._wall_at_start_ms = wall_ms
        self._sleeping: dict[_Sleeper, None] = {}
        self._timeouts: dict[trio.CancelScope, float] = {}
        self.is_stopped = False
        """Between `stop` and `go_on`."""

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a test in the time of this clock's timeline."""
        trio.run(main, clock=self._timeline)

    def monotonic(self) -> float:
        """See `TaskClock`."""
        return self._timeline.now

    def wall_ms(self) -> int:
        """See `TaskClock`."""
        return self._wall_at_start_ms + int(self._timeline.now * 1000)

    def shift_wall(self, milliseconds: int) -> None:
        """Correct the wall clock, forwards or backwards; monotonic time stays as it is."""
        self._wall_at_start_ms += milliseconds

    async def sleep(self, seconds: float) -> None:
        """See `TaskClock`."""
        await self.sleep_until(self._timeline.now + max(seconds, 0.0))

    async def sleep_until(self, deadline: float) -> None:
        """See `TaskClock`."""
        if deadline <= self._timeline.now and not self.is_stopped:
            await trio.lowlevel.checkpoint()
            return
        sleeper = _Sleeper(deadline, trio.lowlevel.current_task(), self)
        self._sleeping[sleeper] = None
        self._timeline.put_to_sleep(sleeper)

        def abort(_: Any) -> trio.lowlevel.Abort:
            sleeper.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            del self._sleeping[sleeper]

    def timeout(self, seconds: float) -> "_Timeout":
        """See `TaskClock`."""
        deadline = self._timeline.now + max(seconds, 0.0)
        scope = trio.CancelScope(deadline=math.inf if self.is_stopped else deadline)
        return _Timeout(scope, deadline, self._timeouts)

    def stop(self) -> None:
        """Wake no task that waits for this clock until `go_on`. Time itself goes on."""
        self.is_stopped = True
        for scope in self._timeouts:
            scope.deadline = math.inf

    def go_on(self) -> None:
        """Undo `stop`: sleepers and timeouts whose deadline has passed meanwhile are due now."""
        self.is_stopped = False
        for scope, deadline in self._timeouts.items():
            scope.deadline = deadline
        for sleeper in self._sleeping:
            self._timeline.put_to_sleep(sleeper)
