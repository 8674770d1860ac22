"""The seam to time: every component that needs a clock is handed one.

Engine code never imports `time`, so tests, crash runs and simulations decide what time it is.
The broker's own clock is `broker.world.clock.SystemClock`; tests use `tests.support.manual_clock`.
"""

from typing import Protocol


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is waited for."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, as stored in records, snapshots and retention decisions."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back: timeouts and deadlines."""
        ...
