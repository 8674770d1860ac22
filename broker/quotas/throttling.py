"""How long clients were throttled, for metrics and `pykafkalog quotas`.

It is Kafka's sensor `<type>ThrottleTime`: the average of the throttle times of the last minute or
so, without those of 0.
"""

import math
from typing import Final

from broker.quotas.rate import Rate, Windows

_WINDOWS: Final = Windows(samples=2, window_ms=30_000)
"""`metrics.num.samples` and `metrics.sample.window.ms`."""


class ThrottleTimes:
    """The throttle times of one client, or one listener. Milliseconds."""

    __slots__ = ("_counts", "_sums", "until_ms")

    def __init__(self) -> None:
        self._sums: Rate | None = None
        self._counts: Rate | None = None
        self.until_ms = 0
        """Until when it is throttled."""

    def note(self, throttle_ms: int, now_ms: int) -> None:
        """It is throttled for so long from now on."""
        if self._sums is None or self._counts is None:
            self._sums, self._counts = Rate(_WINDOWS), Rate(_WINDOWS)
        self._sums.record(throttle_ms, now_ms)
        self._counts.record(1, now_ms)
        self.until_ms = max(self.until_ms, now_ms + throttle_ms)

    def average(self, now_ms: int) -> float:
        """The average; NaN if it was not throttled lately."""
        if self._sums is None or self._counts is None:
            return math.nan
        count = self._counts.measured(now_ms).per_second
        return self._sums.measured(now_ms).per_second / count if count else math.nan

    def left_ms(self, now_ms: int) -> int:
        """For how long it is still throttled."""
        return max(self.until_ms - now_ms, 0)
