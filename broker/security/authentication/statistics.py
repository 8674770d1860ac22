"""The counters of authentications: the numbers of Kafka's `socket-server-metrics`."""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Final

LATENCY_WINDOW_S: Final = 60.0
"""How long a re-authentication counts for its latency, as two windows of Kafka's metrics do."""
_MOST: Final = 1024


@dataclass(slots=True, kw_only=True)
class AuthenticationCounts:
    """The counters of one listener since the start."""

    successful: int = 0
    without_sessions: int = 0
    """Those of `successful` whose client cannot authenticate again."""
    failed: int = 0
    successful_again: int = 0
    failed_again: int = 0
    expired: int = 0
    """Connections closed because they went on after their session had expired."""
    late: int = 0
    """Connections closed because they had not authenticated in time."""
    pushed_out: int = 0
    """Connections closed before they had authenticated, to make room for others."""


@dataclass(slots=True, kw_only=True)
class AuthenticationStatistics(AuthenticationCounts):
    """A snapshot of one listener's numbers."""

    latency_avg_s: float | None = None
    """The average over recent re-authentications; None if there were none."""
    latency_max_s: float | None = None


class Latencies:
    """How long re-authentications took lately. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def note(self, now: float, seconds: float) -> None:
        """A re-authentication took so long."""
        self._noted.append((now, seconds))

    def statistics(self, now: float, counts: AuthenticationCounts) -> AuthenticationStatistics:
        """A snapshot, with the listener's `counts`."""
        recent = [seconds for then, seconds in self._noted if now - then <= LATENCY_WINDOW_S]
        return AuthenticationStatistics(
            **asdict(counts),
            latency_avg_s=sum(recent) / len(recent) if recent else None,
            latency_max_s=max(recent, default=None),
        )
