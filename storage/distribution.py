"""How long things took: a distribution over the last minute or two, cheap where it is written.

Who measures appends seconds to `note`, which is `deque.append`, and calls `fold` when there are
`FOLD` of them: no sorting, no bucket is looked for per value. `fold` counts them into buckets by
the bits of the numbers themselves: of a double, the exponent and the first two bits of the
fraction are four buckets to the octave, and a shift in numpy finds them all.

A quantile is therefore the upper bound of a bucket, at most a fifth above the truth. Kafka samples
the last five minutes or so; here every value counts for one to two windows of `WINDOW_S`.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

FOLD: Final = 1024
"""Values kept before they are counted: that takes some 40 microseconds."""
WINDOW_S: Final = 60.0
KEPT: Final = 4 * FOLD
"""Values that may wait for a `fold`. Nobody who writes exceeds it, unless nothing it began ends."""

_FRACTION_BITS: Final = 2
_SHIFT: Final = 52 - _FRACTION_BITS
_PER_OCTAVE: Final = 1 << _FRACTION_BITS
_LOWEST: Final = 2.0**-24
"""Seconds: 60 ns. What took less is counted there."""
_OCTAVES: Final = 40
_BUCKETS: Final = _OCTAVES * _PER_OCTAVE + 1


def _bits(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64).view(np.int64) >> _SHIFT


_FIRST: Final = int(_bits([_LOWEST])[0]) - 1
_BOUNDS: Final = ((np.arange(_BUCKETS, dtype=np.int64) + _FIRST + 1) << _SHIFT).view(np.float64)
"""What every value of a bucket is below."""


@dataclass(frozen=True, slots=True)
class DistributionSnapshot:
    """What a `Distribution` says at one moment; seconds."""

    count: int
    """Values since the start."""
    total_s: float
    """Their sum."""
    recent: int
    """Values of the last minute or two."""
    recent_counts: tuple[int, ...]

    def quantiles_s(self, quantiles: Iterable[float]) -> list[float]:
        """Of the last minute or two; NaN where there was nothing."""
        if not self.recent:
            return [float("nan") for _ in quantiles]
        seen = np.cumsum(self.recent_counts)
        ranks = [max(1, int(np.ceil(quantile * self.recent))) for quantile in quantiles]
        return [float(_BOUNDS[index]) for index in np.searchsorted(seen, ranks)]


class Distribution:
    """One kind of duration. `note` from one thread; the rest from that one, too."""

    __slots__ = ("_now", "_old", "_total", "_window", "count", "note", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[float] = deque(maxlen=KEPT)
        """Values that are not counted yet."""
        self.note = self.waiting.append
        """Takes one duration, seconds."""
        self.count = 0
        """Values that were counted since the start."""
        self._total = 0.0
        self._window = 0
        self._now = np.zeros(_BUCKETS, dtype=np.int64)
        self._old = np.zeros(_BUCKETS, dtype=np.int64)

    def fold(self, now: float) -> None:
        """Count what was noted; `now` is in monotonic seconds."""
        window = int(now // WINDOW_S)
        if window != self._window:
            self._turn(window)
        waiting = self.waiting
        if not waiting:
            return
        values = np.fromiter(waiting, np.float64, len(waiting))
        waiting.clear()
        self.count += len(values)
        self._total += float(values.sum())
        buckets = values.view(np.int64)
        buckets >>= _SHIFT
        buckets -= _FIRST
        np.maximum(buckets, 0, out=buckets)
        np.minimum(buckets, _BUCKETS - 1, out=buckets)
        self._now += np.bincount(buckets, minlength=_BUCKETS)

    def note_many(self, value: float, times: int, now: float) -> None:
        """As `note`, so many times the same."""
        self.fold(now)
        self.count += times
        self._total += value * times
        bucket = min(max(int(_bits([value])[0]) - _FIRST, 0), _BUCKETS - 1)
        self._now[bucket] += times

    def snapshot(self, now: float) -> DistributionSnapshot:
        """A frozen copy, with all that was noted."""
        self.fold(now)
        recent = self._now + self._old
        return DistributionSnapshot(
            self.count, self._total, int(recent.sum()), tuple(recent.tolist())
        )

    def _turn(self, window: int) -> None:
        if window == self._window + 1:
            self._old, self._now = self._now, self._old
            self._now[:] = 0
        else:
            self._old[:] = self._now[:] = 0
        self._window = window
