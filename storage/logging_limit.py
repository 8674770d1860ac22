"""Bounds the rate of log lines about events that clients can cause as often as they like."""

from typing import Final

from storage.clock import Clock

PERIOD_S: Final = 10.0


class LoggingLimit:
    """One kind of log line, written at most once every `PERIOD_S` seconds."""

    __slots__ = ("_count", "_monotonic", "_next")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._next = 0.0
        self._count = 0

    def count_event(self) -> int:
        """Count one event. If a line is due, return how many events it stands for, else 0."""
        self._count += 1
        now = self._monotonic()
        if now < self._next:
            return 0
        self._next = now + PERIOD_S
        count, self._count = self._count, 0
        return count
