"""Kafka's `Rate`: the sum of the values recorded in the last windows, per second.

Time is cut into windows; the sum of one is a sample. A sample begins with the first record after
the one before it is over, so a pause makes no samples. The rate is measured from all samples that
had a record in the last `samples` windows, over the time since the oldest of them began, and at
least over all windows but one: so a client may spend ten seconds' worth at once after a pause
(decision 102).

Source: `org.apache.kafka.common.metrics.stats.Rate`, `SampledStat` and
`org.apache.kafka.server.quota.QuotaUtils` (S-QTA-1).
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

MOST_MS: Final = (1 << 31) - 1
"""The longest throttle time that an answer can contain."""


@dataclass(frozen=True, slots=True)
class Windows:
    """How rates are sampled: `quota.window.num` and `quota.window.size.seconds`."""

    samples: int = 11
    window_ms: int = 1000

    @property
    def full_s(self) -> int:
        """The seconds over which a rate is measured at least."""
        return (self.samples - 1) * self.window_ms // 1000


class Measured(NamedTuple):
    """A rate at one moment."""

    per_second: float
    window_ms: int
    """The time that it was measured over."""

    def over(self, bound: float) -> int:
        """Milliseconds after which the rate is `bound` if nothing more is recorded; 0 within it."""
        if self.per_second <= bound:
            return 0
        ms = (self.per_second - bound) / bound * self.window_ms if bound > 0 else math.inf
        return MOST_MS if ms >= MOST_MS else math.floor(ms + 0.5)


class Rate:
    """The use of one client per second. Times are milliseconds that never go back."""

    __slots__ = ("_current", "_lasts", "_starts", "_sums", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        # By sample, of which there is one more than windows: one may overlap the oldest window.
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._sums: list[float] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count `value`, which may be negative to take back a value that was counted before."""
        starts = self._starts
        if not starts:
            self._add(now_ms)
        elif now_ms - starts[self._current] >= self._windows.window_ms:
            self._current = (self._current + 1) % (self._windows.samples + 1)
            if self._current == len(starts):
                self._add(now_ms)
            else:
                self._reset(self._current, now_ms)
        self._lasts[self._current] = now_ms
        self._sums[self._current] += value

    def measured(self, now_ms: int) -> Measured:
        """The rate now. Samples without a record in the last windows are forgotten."""
        samples, window_ms = self._windows.samples, self._windows.window_ms
        if not self._starts:
            self._add(now_ms)
        for at, last in enumerate(self._lasts):
            if now_ms - last >= samples * window_ms:
                self._reset(at, now_ms)
        elapsed = now_ms - min(self._starts)
        missing = samples - 1 - elapsed // window_ms
        if missing > 0:
            elapsed += missing * window_ms
        elapsed = max(elapsed, 1)
        return Measured(sum(self._sums) * 1000 / elapsed, elapsed)

    def _add(self, now_ms: int) -> None:
        self._starts.append(now_ms)
        self._lasts.append(now_ms)
        self._sums.append(0.0)

    def _reset(self, at: int, now_ms: int) -> None:
        self._starts[at] = self._lasts[at] = now_ms
        self._sums[at] = 0.0
