"""How long a handler has worked, without the times in which its request was parked."""

from storage.clock import Clock


class Stopwatch:
    """Runs from when it is made. Seconds."""

    __slots__ = ("_monotonic", "_since", "_worked")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._worked = 0.0
        self._since = clock.monotonic()

    def stop(self) -> None:
        """The request is parked."""
        self._worked += self._monotonic() - self._since

    def go_on(self) -> None:
        """The request is not parked any more."""
        self._since = self._monotonic()

    @property
    def worked_s(self) -> float:
        """The time of work so far, while it runs."""
        return self._worked + self._monotonic() - self._since
