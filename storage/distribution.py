"""How long things took: a distribution over the last minute or two, cheap where it is written.

Who measures appends seconds to `note`, which is `deque.append`, and calls `fold` when there are
`FOLD` of them: no sorting, no bucket is looked for per value. The bucket of a double is its first
sixteen bits (sign, exponent, four bits of the fraction): sixteen buckets to the octave, found for
all values by one strided view of their bytes, and counted by `Counter`. That needs no numpy, which
a broker at rest does without.

A quantile is therefore the upper bound of a bucket, at most a sixteenth above the truth. Kafka
samples the last five minutes or so; here every value counts for one to two windows of `WINDOW_S`.
"""

import math
import struct
import sys
from array import array
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

FOLD: Final = 1024
"""Values kept before they are counted: that takes some 100 microseconds."""
WINDOW_S: Final = 60.0
KEPT: Final = 4 * FOLD
"""Values that may wait for a `fold`. Nobody who writes exceeds it, unless nothing it began ends."""

_FIRST_WORD: Final = 3 if sys.byteorder == "little" else 0
_NEGATIVE: Final = 0x8000
"""Words from here on are those of negative numbers: clocks of two threads. They count as 0."""


def _words(values: "array[float]") -> list[int]:
    """The first sixteen bits of each; in the order of the values, for those that are positive."""
    return memoryview(values).cast("B").cast("H")[_FIRST_WORD::4].tolist()


def _bound(word: int) -> float:
    """What every value of a bucket is below."""
    if word >= _NEGATIVE:
        word = 0
    value: float = struct.unpack(">d", struct.pack(">Hxxxxxx", word + 1))[0]
    return value


@dataclass(frozen=True, slots=True)
class DistributionSnapshot:
    """What a `Distribution` says at one moment; seconds."""

    count: int
    """Values since the start."""
    total_s: float
    """Their sum."""
    recent: int
    """Values of the last minute or two."""
    recent_counts: tuple[tuple[float, int], ...]
    """Of these: (what they are below, how many), ascending."""

    def quantiles_s(self, quantiles: Iterable[float]) -> list[float]:
        """Of the last minute or two; NaN where there was nothing."""
        if not self.recent:
            return [math.nan for _ in quantiles]
        seen = list(accumulate(count for _, count in self.recent_counts))
        found = []
        for quantile in quantiles:
            rank = max(1, math.ceil(quantile * self.recent))
            index = next(place for place, until in enumerate(seen) if until >= rank)
            found.append(self.recent_counts[index][0])
        return found


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
        self._now: Counter[int] = Counter()
        self._old: Counter[int] = Counter()

    def fold(self, now: float) -> None:
        """Count what was noted; `now` is in monotonic seconds."""
        window = int(now // WINDOW_S)
        if window != self._window:
            self._old = self._now if window == self._window + 1 else Counter()
            self._now = Counter()
            self._window = window
        waiting = self.waiting
        if not waiting:
            return
        values = array("d", waiting)
        waiting.clear()
        self.count += len(values)
        self._total += sum(values)
        self._now.update(_words(values))

    def note_many(self, value: float, times: int, now: float) -> None:
        """As `note`, so many times the same."""
        self.fold(now)
        self.count += times
        self._total += value * times
        self._now[_words(array("d", (value,)))[0]] += times

    def snapshot(self, now: float) -> DistributionSnapshot:
        """A frozen copy, with all that was noted."""
        self.fold(now)
        bounds: Counter[float] = Counter()
        for counts in (self._now, self._old):
            for word, count in counts.items():
                bounds[_bound(word)] += count
        return DistributionSnapshot(
            self.count, self._total, bounds.total(), tuple(sorted(bounds.items()))
        )
