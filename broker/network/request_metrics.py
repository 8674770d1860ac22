"""What a request cost, by API: counts, times by phase, and a distribution of the total.

Kafka's RequestMetrics, cut down to what is worth a microsecond per request: plain sums, and a
histogram by powers of two of microseconds from which a scrape computes quantiles. The phases:

* queue: from the arrival of the frame until its turn comes (behind others, or for a worker);
* local: parsing and the handler at work;       * remote: parked until the reply was ready;
* send: encoding and writing the reply.

The connection adds to these fields directly; whoever reads takes `snapshot()`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

BUCKETS = 28
"""Bucket n counts totals below 2**n microseconds; the last one (134 s) also everything above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One API's numbers since the start; times are sums in seconds."""

    requests: int
    errors: int
    queue_s: float
    local_s: float
    remote_s: float
    send_s: float
    total_s: float
    histogram: tuple[int, ...]

    def quantile_ms(self, quantile: float) -> float:
        """Upper bound of the bucket in which the quantile lies; 0 without requests."""
        count = sum(self.histogram)
        rank, seen = quantile * count, 0
        for bucket, number in enumerate(self.histogram):
            seen += number
            if number and seen >= rank:
                return float(1 << bucket) / 1000
        return 0.0


class RequestMetrics:
    """Counters of one API. Written by connections only."""

    __slots__ = (
        "errors",
        "histogram",
        "local",
        "name",
        "queue",
        "remote",
        "requests",
        "send",
        "total",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.errors = 0
        """Requests that ended in an exception no handler foresaw, or in bad bytes."""
        self.queue = 0.0
        self.local = 0.0
        self.remote = 0.0
        self.send = 0.0
        self.total = 0.0
        self.histogram = [0] * BUCKETS

    def snapshot(self) -> RequestTimes:
        """A frozen copy."""
        return RequestTimes(
            requests=self.requests,
            errors=self.errors,
            queue_s=self.queue,
            local_s=self.local,
            remote_s=self.remote,
            send_s=self.send,
            total_s=self.total,
            histogram=tuple(self.histogram),
        )


def note_sent(turn: Sequence[RequestMetrics], received: float, done: float, sent: float) -> None:
    """The replies of one turn have left: all arrived at `received`, their handlers were through by
    `done`, and they were sent at `sent`."""
    total = sent - received
    bucket = min(int(total * 1e6).bit_length(), BUCKETS - 1)
    sending = (sent - done) / len(turn)
    for metrics in turn:
        metrics.total += total
        metrics.send += sending
        metrics.histogram[bucket] += 1
