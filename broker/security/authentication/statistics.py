"""What is counted of authentications: the numbers of Kafka's `socket-server-metrics`."""

from collections import deque
from dataclasses import dataclass
from typing import Final

LATENCY_WINDOW_S: Final = 60.0
"""How long a re-authentication counts for its latency, as two windows of Kafka's metrics do."""
_MOST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationStatistics:
    """Numbers of one listener since the start."""

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
    latency_avg_s: float | None = None
    """Of recent re-authentications; None if there were none."""
    latency_max_s: float | None = None


class AuthenticationCounts:
    """The counters of one listener."""

    __slots__ = (
        "_latencies",
        "expired",
        "failed",
        "failed_again",
        "late",
        "pushed_out",
        "successful",
        "successful_again",
        "without_sessions",
    )

    def __init__(self) -> None:
        self.successful = self.without_sessions = self.failed = 0
        self.successful_again = self.failed_again = self.expired = 0
        self.late = self.pushed_out = 0
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_MOST)

    def note_latency(self, now: float, seconds: float) -> None:
        """A re-authentication took so long; `now` is in monotonic seconds."""
        self._latencies.append((now, seconds))

    def statistics(self, now: float) -> AuthenticationStatistics:
        """A snapshot; `now` is in monotonic seconds."""
        recent = [seconds for then, seconds in self._latencies if now - then <= LATENCY_WINDOW_S]
        return AuthenticationStatistics(
            successful=self.successful,
            without_sessions=self.without_sessions,
            failed=self.failed,
            successful_again=self.successful_again,
            failed_again=self.failed_again,
            expired=self.expired,
            late=self.late,
            pushed_out=self.pushed_out,
            latency_avg_s=sum(recent) / len(recent) if recent else None,
            latency_max_s=max(recent, default=None),
        )
