"""A clock that moves only when a test says so."""


class ManualClock:
    """Wall and monotonic time move together; `set_wall_ms` moves the wall alone."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic: float = 1000.0) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._wall_ms

    def monotonic(self) -> float:
        """Seconds."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._monotonic += seconds
        self._wall_ms += round(seconds * 1000)

    def advance_ms(self, milliseconds: int) -> None:
        """Let time pass."""
        self._monotonic += milliseconds / 1000
        self._wall_ms += milliseconds

    def set_wall_ms(self, wall_ms: int) -> None:
        """Somebody sets the wall clock; monotonic time does not notice."""
        self._wall_ms = wall_ms
