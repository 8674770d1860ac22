"""Recent rates, per second, of totals that only grow; Kafka has gauges of such rates.

A rate over the time since the last scrape would depend on how many programs scrape. So totals are
marked at moments at least `APART_S` apart, and a rate is over the time since the last but one mark:
`APART_S` to twice that if scrapes come more often. The first scrape has no rates.
"""

from collections.abc import Callable
from typing import Final

APART_S: Final = 30.0


class Recent:
    """Rates of named totals. Event loop only."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._marks: dict[tuple[str, ...], tuple[tuple[float, float], tuple[float, float]]] = {}
        """By name: the last two marks, the older first, each a (monotonic seconds, total)."""

    def rate(self, *name: str, total: float) -> float | None:
        """Return the recent growth per second; None at the first call for a name."""
        now = (self._monotonic(), total)
        marks = self._marks.get(name)
        if marks is None:
            self._marks[name] = (now, now)
            return None
        older, newer = marks
        if now[0] - newer[0] >= APART_S:
            self._marks[name] = (newer, now)
        elapsed = now[0] - older[0]
        return (total - older[1]) / elapsed if elapsed > 0 else None
