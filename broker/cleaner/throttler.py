"""Bounds the rate of some process, after Kafka's `Throttler`.

Whoever has read or written so many bytes tells it. When `CHECK_INTERVAL_S` has passed since the
last look and the rate of that time was too high, who has told sleeps until it is right, and
everybody who shares the throttler waits for that.

`broker.cleaner.log_cleaner` has one for all its threads (`log.cleaner.io.max.bytes.per.second`).
"""

from typing import Final

import trio

from broker.world.clock import Clock

CHECK_INTERVAL_S: Final = 0.3


class Throttler:
    """At most `rate` a second, of whatever is counted."""

    def __init__(self, clock: Clock, rate: float) -> None:
        self.rate = rate
        """May be changed at any time; holds from the next look on."""
        self._clock = clock
        self._lock = trio.Lock()
        self._period_began = clock.monotonic()
        self._observed = 0.0

    async def throttle(self, observed: float) -> None:
        """So much was done; returns when more may be. Always a checkpoint."""
        async with self._lock:
            self._observed += observed
            elapsed = self._clock.monotonic() - self._period_began
            if elapsed <= CHECK_INTERVAL_S or not self._observed:
                return
            too_early = self._observed / self.rate - elapsed if self.rate > 0 else 0.0
            if too_early > 0:
                await self._clock.sleep(too_early)
            self._period_began = self._clock.monotonic()
            self._observed = 0.0
