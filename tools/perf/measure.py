"""Counts records and keeps their latencies during a run, second by second.

Every latency is kept, four bytes each, so percentiles are exact. A record costs one `append`; the
rest is done once a second.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

INTERVAL_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The records of about one second."""

    end_s: float
    """Seconds since the start of the run."""
    seconds: float
    records: int
    size: int
    """Bytes of values."""
    first_latency: int
    """Index in `Measure.latencies`: the interval has those from here to the next interval's."""


Told = Callable[[Interval], None]
"""Called with an interval that is over."""


class Measure:
    """One run. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.began: Final = now
        self.latencies: Final = array("f")
        """Milliseconds, in the order in which records were acknowledged or read."""
        self.note_ms: Final = self.latencies.append
        self.records = 0
        self.size = 0
        self.failed = 0
        self.failure: str | None = None
        """Why the first failed record failed."""
        self.interrupted = False
        """Set to end the run."""
        self.intervals: list[Interval] = []
        self._at = now
        self._records = 0
        self._size = 0
        self._latencies = 0

    def note(self, records: int, size: int) -> None:
        """Count records that were acknowledged or read, and their bytes."""
        self.records += records
        self.size += size

    def note_failure(self, reason: str) -> None:
        """Count a failed record."""
        self.failed += 1
        if self.failure is None:
            self.failure = reason

    def tick(self, now: float) -> Interval | None:
        """End the current interval if it is over, and return it; else return None."""
        return self.end_interval(now) if now - self._at >= INTERVAL_S else None

    def end_interval(self, now: float) -> Interval:
        """End the current interval and return it."""
        interval = Interval(
            end_s=now - self.began,
            seconds=now - self._at,
            records=self.records - self._records,
            size=self.size - self._size,
            first_latency=self._latencies,
        )
        self.intervals.append(interval)
        self._at, self._records, self._size = now, self.records, self.size
        self._latencies = len(self.latencies)
        return interval

    @property
    def is_interval_open(self) -> bool:
        """Whether records were counted since the last interval ended."""
        return self.records > self._records
