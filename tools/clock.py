"""The machine's clock, for commands that use what takes one (`storage.clock`)."""

import time


class WallClock:
    """Time of day, and time that only goes forward."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()
