"""Kafka's `TokenBucket`: credits that come back at the rate of the quota (KIP-599).

A bucket holds as many credits as come back in all windows together, and begins full. It may be
overdrawn: it gives any number of credits while it is not empty, and then none until it has refilled
above zero. So the large change of a quiet client is not refused for its size.

Source: `org.apache.kafka.common.metrics.stats.TokenBucket`, `ControllerMutationQuotaManager`
(S-QTA-4).
"""

import math

from broker.quotas.rate import MOST_MS, Windows


class TokenBucket:
    """The credits of one client. Times are milliseconds that never go back."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = math.inf
        """Infinite until it is first looked at: then it is full."""
        self._updated_ms = 0

    def tokens(self, quota: float, now_ms: int) -> float:
        """The credits that are left; below 0 if it is overdrawn. `quota`: credits per second."""
        windows = self._windows
        most = windows.samples * windows.window_ms / 1000 * quota
        come_back = quota * (now_ms - self._updated_ms) / 1000
        self._tokens = min(most, self._tokens + come_back)
        self._updated_ms = now_ms
        return self._tokens

    def spend(self, credits: float, quota: float, now_ms: int) -> None:
        """Take `credits` out."""
        self._tokens = self.tokens(quota, now_ms) - credits

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Milliseconds until it is not overdrawn any more."""
        tokens = self.tokens(quota, now_ms)
        if tokens >= 0:
            return 0
        ms = -tokens / quota * 1000 if quota > 0 else math.inf
        return MOST_MS if ms >= MOST_MS else math.floor(ms + 0.5)
