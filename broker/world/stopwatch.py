"""The time that work takes, without its waits."""

from collections.abc import Callable
from typing import TypeVar

from broker.world.driver import rest
from storage.waits import Wait, Work

T = TypeVar("T")


class Stopwatch:
    """Adds up the seconds in which work runs on the loop."""

    __slots__ = ("_monotonic", "_since", "worked_s")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = 0.0
        self.worked_s = 0.0
        """The seconds of all work that has ended, or has begun to wait."""

    async def time(self, work: Work[T]) -> T:
        """Run `work` to its end, and add its turns; return its result, or raise its error.

        Whatever the work waits for is left out: others, its client, a call in a thread.
        """
        self._since = self._monotonic()
        try:
            return await rest(work, None, self, self._monotonic)
        finally:
            self.worked_s += self._monotonic() - self._since

    # ---- the observer of the work (`WaitObserver`)

    def waits(self, wait: Wait) -> None:
        """The work begins to wait."""
        self.worked_s += self._monotonic() - self._since

    def goes_on(self) -> float:
        """The wait is over."""
        self._since = now = self._monotonic()
        return now
