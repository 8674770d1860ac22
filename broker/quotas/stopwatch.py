"""How long a handler has worked, without the times in which it waited or others had their turn."""

from storage.clock import Clock
from storage.waits import Wait, Work


class Stopwatch:
    """Runs from when it is made. Seconds."""

    __slots__ = ("_monotonic", "_since", "_worked")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._worked = 0.0
        self._since = clock.monotonic()

    async def leave_out(self, waiting: Work[None] | Wait) -> None:
        """Wait, and leave out the time."""
        self._worked += self._monotonic() - self._since
        await waiting
        self._since = self._monotonic()

    @property
    def worked_s(self) -> float:
        """The time of work so far, while it runs."""
        return self._worked + self._monotonic() - self._since
