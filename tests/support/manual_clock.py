"""A clock that only moves when a test says so; see `storage.clock.Clock`."""

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
        """Both clocks go on by `seconds` plus `ms` milliseconds."""
        total_ms = round(seconds * 1000) + ms
        assert total_ms >= 0, "monotonic time does not go back"
        self._wall_ms += total_ms
        self._monotonic += total_ms / 1000

    async def sleep(self, seconds: float) -> None:
        """Whoever waits moves it."""
        await trio.lowlevel.checkpoint()
        self.advance(ms=math.ceil(seconds * 1000))

    def set_wall_ms(self, wall_ms: int) -> None:
        """The wall clock is corrected, maybe backwards; monotonic time does not notice."""
        self._wall_ms = wall_ms
