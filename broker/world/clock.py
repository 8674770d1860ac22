"""Time: what o'clock it is, and waiting.

`storage.clock.Clock` is what synchronous code needs of it; here is what tasks need beside it. Who
waits does it through the clock, so that a whole broker can live in virtual time
(`broker.world.virtual_time`), and that time can stand still for one broker and not for others.
"""

import time  # noqa: TID251 - this module is the seam the rule points to
from contextlib import AbstractContextManager
from typing import Protocol

import trio

from storage.clock import Clock as StorageClock


class Clock(StorageClock, Protocol):
    """Wall time, monotonic time, and waiting for either to pass. Seconds are monotonic."""

    async def sleep(self, seconds: float) -> None:
        """Returns after so long; a checkpoint also for 0."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Returns when `monotonic` has reached `deadline`; at once, as a checkpoint, if it has."""
        ...

    def timeout(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """Cancels what is inside after so long, silently, as `trio.move_on_after`."""
        ...


class SystemClock:
    """Real time. The first two are cheap enough (some 50 ns) to be called for each request."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Seconds since some point in the past; never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await trio.sleep(max(seconds, 0))

    async def sleep_until(self, deadline: float) -> None:
        """See `Clock`."""
        await trio.sleep(max(deadline - time.monotonic(), 0))

    def timeout(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """See `Clock`."""
        return trio.move_on_after(max(seconds, 0))
