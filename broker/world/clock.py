"""Time: reading the clock, and waiting.

`storage.clock.Clock` is the part that synchronous code needs; this module adds waiting, for tasks.
Every wait goes through the clock, so that a whole broker can run in virtual time
(`tests/support/virtual_time.py`), and time can stop for one broker while others go on.
"""

import time  # noqa: TID251 - this module is the seam the rule points to
from contextlib import AbstractContextManager
from typing import Protocol

import trio

from storage.clock import Clock


class TaskClock(Clock, Protocol):
    """Wall time, monotonic time, and waiting for either to pass. Seconds are monotonic."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; a checkpoint even if that is 0 or less."""
        ...

    async def sleep_until(self, deadline: float) -> None:
        """Return when `monotonic` reaches `deadline`; a checkpoint even if that has passed."""
        ...

    def timeout(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """Cancel the enclosed block after `seconds`, without an error, as `trio.move_on_after`."""
        ...


class SystemClock:
    """Real time. `monotonic` and `wall_ms` take some 50 ns, cheap enough to call per request."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Seconds since some point in the past; never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See `TaskClock`."""
        await trio.sleep(max(seconds, 0))

    async def sleep_until(self, deadline: float) -> None:
        """See `TaskClock`."""
        await trio.sleep(max(deadline - time.monotonic(), 0))

    def timeout(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """See `TaskClock`."""
        return trio.move_on_after(max(seconds, 0))
