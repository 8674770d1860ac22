"""What a total that only grows came to per second lately: Kafka has gauges of that kind.

A rate over the time since the last scrape would depend on who scrapes. So totals are remembered at
moments that are `APART_S` apart, and a rate is over the time since the last but one of those:
`APART_S` to twice that, if someone scrapes more often. The first scrape has no rates.
"""

from collections.abc import Callable
from typing import Final

APART_S: Final = 30.0


class Recent:
    """Rates of named totals. Event loop only."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._marks: dict[tuple[str, ...], tuple[tuple[float, float], tuple[float, float]]] = {}
        """By name: two moments, the older first, and what the total was then."""

    def rate(self, *name: str, total: float) -> float | None:
        """Growth per second; None while there is nothing to compare with."""
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
