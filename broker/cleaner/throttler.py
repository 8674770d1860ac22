"""Bounds the rate of some work, after Kafka's `Throttler`.

A caller that has read or written some bytes reports them. If more than `CHECK_INTERVAL_S` has
passed since the last check and the rate in that time was too high, the caller sleeps until the
rate is right, and all other callers of the throttler wait behind it.

`broker.cleaner.log_cleaner` has one for all its threads (`log.cleaner.io.max.bytes.per.second`).
"""

from typing import Final

from storage.clock import Clock
from storage.waits import Lock, sleep

CHECK_INTERVAL_S: Final = 0.3


class Throttler:
    """Allows at most `rate` units per second; 0 or less means no bound."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self.rate = rate
        """Units per second. May be changed at any time; the next check uses it."""
        self._clock = clock
        self._lock = Lock()
        self._period_began = clock.monotonic()
        self._observed = 0.0

    async def throttle(self, observed: float) -> None:
        """Report `observed` units as done; return when more may be done."""
        async with self._lock:
            self._observed += observed
            elapsed = self._clock.monotonic() - self._period_began
            if elapsed <= CHECK_INTERVAL_S or not self._observed:
                return
            too_early = self._observed / self.rate - elapsed if self.rate > 0 else 0.0
            if too_early > 0:
                await sleep(too_early)
            self._period_began = self._clock.monotonic()
            self._observed = 0.0
