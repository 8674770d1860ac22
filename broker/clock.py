"""The broker's own clock: the one place in the engine where real time is read.

Everything else is handed a `storage.clock.Clock`; only `broker.server` makes this one.
"""

import time  # noqa: TID251 - this module is the seam the rule points to


class SystemClock:
    """Real time. Both methods are cheap enough (some 50 ns) to be called for each request."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Seconds since some point in the past; never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000
