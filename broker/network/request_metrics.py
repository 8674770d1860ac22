"""What a request cost, by API: how many there were, and how long each phase of them took.

Kafka's RequestMetrics. The phases of one request, which add up to its total:

* queue: from the arrival of the frame until its turn comes (behind others, or for a worker);
* local: parsing and the handler at work;       * remote: parked until the reply was ready;
* response queue: the reply waits for those of the other requests that came with it;
* send: encoding and writing what leaves together.

The connection hands each phase's seconds to `note_…`, which is the `append` of a deque: counting
them (`storage.distribution`) is left for a thousand at a time. Most requests are never parked, and
most replies leave alone: only what took time there is noted, and `fold` counts a zero for each
of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.distribution import FOLD, Distribution, DistributionSnapshot

PHASES: Final = ("queue", "local", "remote", "response_queue", "send", "total")
_OFTEN_ZERO: Final = ("remote", "response_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One API's numbers since the start."""

    requests: int
    """That were parsed, whatever became of them."""
    errors: int
    phases: dict[str, DistributionSnapshot]
    """By the names of `PHASES`; of requests that were answered."""


class RequestMetrics:
    """Counters of one API. Written by connections only."""

    __slots__ = (
        "_distributions",
        "errors",
        "name",
        "note_local",
        "note_queue",
        "note_remote",
        "note_response_queue",
        "note_send",
        "note_total",
        "requests",
        "waiting",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.errors = 0
        """Requests that ended in an exception no handler foresaw, or in bad bytes."""
        self._distributions = found = {phase: Distribution() for phase in PHASES}
        self.note_queue = found["queue"].note
        self.note_local = found["local"].note
        self.note_remote = found["remote"].note
        self.note_response_queue = found["response_queue"].note
        self.note_send = found["send"].note
        self.note_total = found["total"].note
        self.waiting = found["total"].waiting
        """Totals that are not counted yet: at `FOLD` of them `fold` is due."""

    def note_many(self, total: float, sending: float, response_queue: list[float]) -> None:
        """As many requests as there are in `response_queue`, at most `FOLD`."""
        found, count = self._distributions, len(response_queue)
        found["total"].waiting.extend([total] * count)
        found["send"].waiting.extend([sending] * count)
        found["response_queue"].waiting.extend(response_queue)

    def fold(self, now: float) -> None:
        """Count what was noted; `now` is in monotonic seconds."""
        found = self._distributions
        for distribution in found.values():
            distribution.fold(now)
        answered = found["total"].count
        for phase in _OFTEN_ZERO:
            zeros = answered - found[phase].count
            if zeros > 0:
                found[phase].note_many(0.0, zeros, now)

    def snapshot(self, now: float) -> RequestTimes:
        """A frozen copy; `now` is in monotonic seconds."""
        self.fold(now)
        return RequestTimes(
            requests=self.requests,
            errors=self.errors,
            phases={name: found.snapshot(now) for name, found in self._distributions.items()},
        )


def note_sent(
    turn: Sequence[RequestMetrics],
    ready: Sequence[float],
    received: float,
    done: float,
    sent: float,
) -> None:
    """The replies of one turn have left, all together: their requests arrived at `received`, the
    handler of each was through at its `ready`, that of the last at `done`, and they were sent at
    `sent`."""
    total, sending = sent - received, sent - done
    count, first = len(turn), turn[0]
    if 1 < count <= FOLD and turn.count(first) == count:  # sent ahead, as producers do
        first.note_many(total, sending, [done - finished for finished in ready])
        if len(first.waiting) >= FOLD:
            first.fold(sent)
        return
    for metrics in turn:
        metrics.note_total(total)
        metrics.note_send(sending)
        if len(metrics.waiting) >= FOLD:
            metrics.fold(sent)
    if ready[0] != done:  # they are in order: the first waited longest, the last not at all
        for metrics, finished in zip(turn, ready, strict=True):
            metrics.note_response_queue(done - finished)
