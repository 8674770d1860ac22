"""Virtual time: hours in milliseconds, and the same hours again from the same seed.

    timeline = Timeline()
    trio.run(main, clock=timeline)          inside: VirtualClock(timeline) for each broker

Time stands still while any task has something to do and jumps to the next deadline when none has:
in a world without sockets and threads nothing else could ever happen. So a run takes as long as its
work does, and what o'clock it is depends on the work alone.

Each broker has a clock of its own on the timeline. Its wall may be set, and the clock may be
stopped and started as a process is (SIGSTOP): what it was to wake meanwhile wakes late, all at
once.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

START_WALL_MS: Final = 1_700_000_000_000
"""Some day in November 2023: what virtual records are dated with."""


class Timeline(trio.abc.Clock):
    """The time of one `trio.run`, in seconds. Moved by trio's loop only."""

    def __init__(self) -> None:
        self.now = 0.0

    def start_clock(self) -> None:
        """See `trio.abc.Clock`."""

    def current_time(self) -> float:
        """See `trio.abc.Clock`."""
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Asked when no task can run: then it is `deadline` at once."""
        if deadline == math.inf:
            return deadline  # the end of the run, or a wait for a thread
        self.now = max(self.now, deadline)
        return 0.0


class VirtualClock:
    """A `broker.world.clock.Clock` on a timeline."""

    def __init__(self, timeline: Timeline, *, wall_ms: int = START_WALL_MS) -> None:
        """`wall_ms` is what the wall shows at second 0 of the timeline."""
        self._timeline = timeline
        self._wall_at_start_ms = wall_ms
        self._waiting: dict[trio.CancelScope, float] = {}
        self._stopped = False

    def monotonic(self) -> float:
        """See `Clock`."""
        return self._timeline.now

    def wall_ms(self) -> int:
        """See `Clock`."""
        return self._wall_at_start_ms + int(self._timeline.now * 1000)

    def shift_wall(self, milliseconds: int) -> None:
        """The wall clock is corrected, maybe backwards; monotonic time does not notice."""
        self._wall_at_start_ms += milliseconds

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await self.sleep_until(self._timeline.now + max(seconds, 0.0))

    async def sleep_until(self, deadline: float) -> None:
        """See `Clock`."""
        if deadline <= self._timeline.now and not self._stopped:
            await trio.lowlevel.checkpoint()
            return
        with self._until(deadline):
            await trio.sleep_forever()

    @contextmanager
    def timeout(self, seconds: float) -> Iterator[trio.CancelScope]:
        """See `Clock`."""
        with self._until(self._timeline.now + max(seconds, 0.0)) as scope:
            yield scope

    def stop(self) -> None:
        """Nothing that waits for this clock wakes any more, whatever time it is."""
        self._stopped = True
        for scope in self._waiting:
            scope.deadline = math.inf

    def go_on(self) -> None:
        """It had only stopped ringing: what is overdue wakes now."""
        self._stopped = False
        for scope, deadline in self._waiting.items():
            scope.deadline = deadline

    @contextmanager
    def _until(self, deadline: float) -> Iterator[trio.CancelScope]:
        scope = trio.CancelScope(deadline=math.inf if self._stopped else deadline)
        self._waiting[scope] = deadline
        try:
            with scope:
                yield scope
        finally:
            del self._waiting[scope]
