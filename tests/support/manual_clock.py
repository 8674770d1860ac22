"""A clock that moves only when a test moves it; see `storage.clock.Clock`."""

import math

import trio


class ManualClock:
    """Wall and monotonic time, advanced together by hand; the wall may also be set."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic: float = 1000.0) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic

    def wall_ms(self) -> int:
        return int(self._wall_ms)

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float = 0.0, *, ms: int = 0) -> None:
        """Move both clocks on by `seconds` plus `ms` milliseconds."""
        total_ms = round(seconds * 1000) + ms
        assert total_ms >= 0, "monotonic time does not go back"
        self._wall_ms += total_ms
        self._monotonic += total_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Move the clock instead of waiting."""
        await trio.lowlevel.checkpoint()
        self.advance(ms=math.ceil(seconds * 1000))

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock, forwards or backwards; monotonic time stays as it is."""
        self._wall_ms = wall_ms


class PassingClock(ManualClock):
    """Each look at the monotonic time takes a second."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()
