"""The requests by API: how many there were, and how long each of their phases took.

Kafka's RequestMetrics. The phases of one request, which add up to its total:

* queue: from the arrival of the frame until its turn comes, after others or for a worker;
* local: parsing and the handler at work;       * remote: parked until the reply was ready;
* response queue: the reply waits for those of the other requests that came with it;
* send: encoding and writing the replies that leave together.

The connection passes each phase's seconds to `note_…`, which is the `append` of a deque; they are
counted a thousand at a time (`storage.distribution`, decision 73). Most requests are never parked
and most replies leave alone, so remote and response queue are noted only if they took time, and
`fold` counts a zero for each of the other requests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.distribution import FOLD, Distribution, DistributionSnapshot

PHASES: Final = ("queue", "local", "remote", "response_queue", "send", "total")
_OFTEN_ZERO: Final = ("remote", "response_queue")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """The numbers of one API since the start."""

    requests: int
    """Requests that were parsed, whatever their outcome."""
    errors: int
    phases: dict[str, DistributionSnapshot]
    """By the names of `PHASES`; of answered requests only."""


class RequestMetrics:
    """The counters of one API. Only connections write them."""

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
        """Requests that ended in an unforeseen exception of their handler."""
        self._distributions = found = {phase: Distribution() for phase in PHASES}
        self.note_queue = found["queue"].note
        self.note_local = found["local"].note
        self.note_remote = found["remote"].note
        self.note_response_queue = found["response_queue"].note
        self.note_send = found["send"].note
        self.note_total = found["total"].note
        self.waiting = found["total"].waiting
        """Totals that are not counted yet; with `FOLD` of them `fold` is due."""

    def note_many(self, total: float, sending: float, response_queue: list[float]) -> None:
        """Note one request per item of `response_queue`, at most `FOLD`; seconds each."""
        found, count = self._distributions, len(response_queue)
        found["total"].waiting.extend([total] * count)
        found["send"].waiting.extend([sending] * count)
        found["response_queue"].waiting.extend(response_queue)

    def fold(self, now: float) -> None:
        """Count the noted seconds; `now` is in monotonic seconds."""
        found = self._distributions
        for distribution in found.values():
            distribution.fold(now)
        answered = found["total"].count
        for phase in _OFTEN_ZERO:
            zeros = answered - found[phase].count
            if zeros > 0:
                found[phase].note_many(0.0, zeros, now)

    def snapshot(self, now: float) -> RequestTimes:
        """Return a frozen copy; `now` is in monotonic seconds."""
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
    """Note that the replies of one turn were sent together, at `sent`. The requests arrived at
    `received`; the handler of each was done at its `ready`, that of the last at `done`."""
    total, sending = sent - received, sent - done
    count, first = len(turn), turn[0]
    if 1 < count <= FOLD and turn.count(first) == count:  # pipelined, as producers do
        first.note_many(total, sending, [done - finished for finished in ready])
        if len(first.waiting) >= FOLD:
            first.fold(sent)
        return
    for metrics in turn:
        metrics.note_total(total)
        metrics.note_send(sending)
        if len(metrics.waiting) >= FOLD:
            metrics.fold(sent)
    if ready[0] != done:  # `ready` is in order: the first waited longest, the last not at all
        for metrics, finished in zip(turn, ready, strict=True):
            metrics.note_response_queue(done - finished)
