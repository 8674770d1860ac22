"""How long things took: a distribution over the last minute or two, cheap where it is written.

The caller passes seconds to `note`, which is `deque.append`, and calls `fold` once `FOLD` values
wait: no bucket is searched per value. The bucket of a double is its first sixteen bits (sign,
exponent, four bits of the fraction): sixteen buckets to the octave, found for all values by one
strided view of their bytes. They are sorted, because a thousand durations share a few dozen
buckets, and an equal run is counted in one step. That needs no numpy, which an idle broker does not
load.

A quantile is therefore the upper bound of a bucket, at most a sixteenth above the true value. Kafka
samples the last five minutes or so; here every value counts for one to two windows of `WINDOW_S`.
"""

import math
import struct
import sys
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

FOLD: Final = 1024
"""Values that wait before they are counted; counting them takes some 100 microseconds."""
WINDOW_S: Final = 60.0
KEPT: Final = 4 * FOLD
"""The most values that may wait for a `fold`; beyond it the oldest are dropped."""

_FIRST_WORD: Final = 3 if sys.byteorder == "little" else 0
_NEGATIVE: Final = 0x8000
"""Words from here on are those of negative numbers, which come of clocks read in two threads. They
count as 0."""


def _words(values: "array[float]") -> list[int]:
    """The first sixteen bits of each value; words of positive values are ordered as these are."""
    return memoryview(values).cast("B").cast("H")[_FIRST_WORD::4].tolist()


def _bound(word: int) -> float:
    """The upper bound of a bucket, exclusive."""
    if word >= _NEGATIVE:
        word = 0
    value: float = struct.unpack(">d", struct.pack(">Hxxxxxx", word + 1))[0]
    return value


@dataclass(frozen=True, slots=True)
class DistributionSnapshot:
    """The content of a `Distribution` at one moment; seconds."""

    count: int
    """How many values since the start."""
    total_s: float
    """Their sum."""
    recent: int
    """How many values in the last minute or two."""
    recent_counts: tuple[tuple[float, int], ...]
    """Buckets of the recent values as (upper bound in seconds, count), ascending."""

    def quantiles_s(self, quantiles: Iterable[float]) -> list[float]:
        """Quantiles (0 to 1) of the last minute or two, in seconds; NaN if there were no values."""
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
    """One kind of duration; every method belongs to one thread."""

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
        values = list(waiting)
        waiting.clear()
        self.count += len(values)
        self._total += sum(values)
        words = _words(array("d", values))
        words.sort()
        counts, at, end = self._now, 0, len(words)
        while at < end:
            word, first = words[at], at
            at = bisect_right(words, word, first)
            counts[word] += at - first

    def note_many(self, value: float, times: int, now: float) -> None:
        """Count the same duration `times` times; `now` is in monotonic seconds."""
        self.fold(now)
        self.count += times
        self._total += value * times
        self._now[_words(array("d", (value,)))[0]] += times

    def snapshot(self, now: float) -> DistributionSnapshot:
        """A frozen copy, which includes the values that waited."""
        self.fold(now)
        bounds: Counter[float] = Counter()
        for counts in (self._now, self._old):
            for word, count in counts.items():
                bounds[_bound(word)] += count
        return DistributionSnapshot(
            self.count, self._total, bounds.total(), tuple(sorted(bounds.items()))
        )
