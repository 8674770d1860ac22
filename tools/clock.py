"""The machine's clock, for commands whose code takes a `storage.clock.Clock`."""

import time


class WallClock:
    """Time of day, and time that only goes forward."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some point in the past."""
        return time.monotonic()
