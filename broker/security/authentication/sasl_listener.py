"""The common part of all connections of one listener that authenticates by SASL."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.deadlines import Deadlines
from broker.security.authentication.limited_lines import LimitedLines
from broker.security.authentication.mechanism import Mechanism
from broker.security.authentication.statistics import (
    AuthenticationCounts,
    AuthenticationStatistics,
    Latencies,
)
from storage.clock import Clock
from storage.waits import Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSurroundings:
    """The parts that the listeners of a broker share."""

    clock: Clock
    deadlines: Deadlines
    lines: LimitedLines
    delay_s: float
    """`connection.failed.authentication.delay.ms`, in seconds."""


class SaslListener:
    """The parts that the authenticators of its connections need, and their counters."""

    def __init__(
        self,
        name: str,
        mechanisms: Sequence[Mechanism],
        surroundings: SaslSurroundings,
        *,
        max_receive_bytes: int,
    ) -> None:
        self.name = name
        self.mechanisms = {mechanism.name: mechanism for mechanism in mechanisms}
        """By name, in the order in which they are offered."""
        self.offered = tuple(self.mechanisms)
        self.max_receive_bytes = max_receive_bytes
        """The most bytes of a request before its connection has authenticated."""
        self.clock = surroundings.clock
        self.counts = AuthenticationCounts()
        self._latencies = Latencies()
        self._deadlines = surroundings.deadlines
        self._lines = surroundings.lines
        self._delay_s = surroundings.delay_s

    def statistics(self) -> AuthenticationStatistics:
        """A snapshot."""
        return self._latencies.statistics(self.clock.monotonic(), self.counts)

    # ---- for its authenticators

    def note_success(self, *, knows_sessions: bool) -> None:
        """A client has proved who it is; `knows_sessions`: it can do so again on its connection."""
        self.counts.successful += 1
        if not knows_sessions:
            self.counts.without_sessions += 1

    def note_success_again(self, took_s: float) -> None:
        """A client has proved again who it is."""
        self.counts.successful_again += 1
        self._latencies.note(self.clock.monotonic(), took_s)

    def count_failure(self, *, again: bool) -> None:
        """A client has failed at its (re-)authentication."""
        if again:
            self.counts.failed_again += 1
        else:
            self.counts.failed += 1

    def tell_of_failure(self, client: str, what: str, reason: str) -> None:
        """A client fails at `what`, its (re-)authentication; the log line is Kafka's."""
        self._lines.info("Failed %s with %s (%s)", what, client, reason)

    def tell_of_stranger(self, client: str, reason: str) -> None:
        """A client began with something else than a handshake; the log line is Kafka's."""
        self._lines.info("Unexpected error from %s; closing connection (%s)", client, reason)

    async def wait_before_refusal(self) -> None:
        """Wait for `connection.failed.authentication.delay.ms`, on behalf of the client."""
        if not self._delay_s:
            return
        over: Signal[None] = Signal()
        timer = self._deadlines.schedule(self._delay_s, over.fire)
        try:
            await over.parked()
        finally:
            timer.cancel()
