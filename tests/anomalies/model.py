"""A history put together: transactions and their outcome, logs by key, streams by consumer.

Outcome, and what may be concluded from it:

    COMMITTED        commit was answered: its values must be read
    ABORTED          aborted, or the client never tried to commit: its values must never be read
    INDETERMINATE    the client tried to commit and got no answer. If a reader sees one value, the
                     transaction counts as committed (`is_committed`); otherwise nothing is known
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final

from tests.anomalies.history import Event

NEVER: Final = 1 << 62
"""A time after all others."""


class Outcome(Enum):
    """The outcome of a transaction, as far as its client knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    INDETERMINATE = "indeterminate"


@dataclass(frozen=True, slots=True)
class Write:
    """One value as a transaction was to send it."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Read:
    """One value as it was read."""

    key: str
    offset: int
    value: str


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction, from its invocation to whatever is known of its end."""

    process: str
    op: int
    transactional_id: str
    invoked: int
    writes: tuple[Write, ...]
    reads: tuple[Read, ...]
    group: str | None = None
    """The group whose offsets it commits for `reads`; None: it commits none."""
    plain: bool = False
    """One record of an idempotent producer, without a transaction: they follow each other in order
    although they overlap in time."""
    committing: int | None = None
    ended: int | None = None
    outcome: Outcome = Outcome.ABORTED
    error: str = ""
    acks: dict[str, int] = field(default_factory=dict)
    """Value to offset, of the sends that were answered with one."""
    is_seen: bool = False
    """Whether a read_committed reader has seen one of its values."""

    @property
    def is_committed(self) -> bool:
        """Whether it is known to be committed."""
        return self.outcome is Outcome.COMMITTED or (
            self.outcome is Outcome.INDETERMINATE and self.is_seen
        )

    @property
    def over_at(self) -> int:
        """The time at which it had certainly taken effect; NEVER if that is not known."""
        return self.ended if self.outcome is Outcome.COMMITTED and self.ended else NEVER

    def __str__(self) -> str:
        return f"{self.process}#{self.op}"

    def describe(self) -> str:
        """Return a line of evidence."""
        sent = ", ".join(
            f"{write.key}@{self.acks.get(write.value, '?')}={write.value}" for write in self.writes
        )
        times = f"{seconds(self.invoked)}–{seconds(self.ended)}"
        why = f" ({self.error})" if self.error else ""
        seen = ", seen" if self.is_seen and self.outcome is not Outcome.COMMITTED else ""
        return (
            f"{self} of {self.transactional_id} {times} {self.outcome.value}{seen}{why} sent {sent}"
        )


def seconds(time: int | None) -> str:
    """Return a time of the history for a person to read."""
    return "…" if time is None or time == NEVER else f"{time / 1e9:.3f}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One answer to a consumer."""

    process: str
    time: int
    stream: int
    """Polls of one process with the same number follow each other without a change of place."""
    values: dict[str, tuple[tuple[int, str], ...]]

    def __str__(self) -> str:
        return f"poll of {self.process} at {seconds(self.time)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRead:
    """All records that a read_committed reader finds at the end."""

    time: int
    values: dict[str, tuple[tuple[int, str], ...]]
    stable: dict[str, int]
    ends: dict[str, int]
    resent: frozenset[Write] = frozenset()
    """The values that their producers have sent more than once (`tests.anomalies.resent`)."""


@dataclass(eq=False)
class History:
    """All that clients saw: `transactions` in order of invocation, `polls` in order of time."""

    transactions: list[Transaction]
    polls: list[Poll]
    final: FinalRead | None
    processes: int

    def is_resent(self, key: str, value: str) -> bool:
        """Whether its own producer has sent it more than once."""
        return self.final is not None and Write(key, value) in self.final.resent

    @cached_property
    def writer_of(self) -> dict[Write, Transaction]:
        """The transaction that sent each value."""
        return {write: one for one in self.transactions for write in one.writes}

    @cached_property
    def read_offsets(self) -> dict[str, dict[str, set[int]]]:
        """The offsets at which each value was read, by key and value."""
        found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for key, offset, value in self._all_reads():
            found[key][value].add(offset)
        return found

    @cached_property
    def known_offsets(self) -> dict[str, dict[str, set[int]]]:
        """The offsets of `read_offsets`, and those of answers to producers."""
        found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for key, values in self.read_offsets.items():
            for value, offsets in values.items():
                found[key][value] |= offsets
        for one in self.transactions:
            for write in one.writes:
                offset = one.acks.get(write.value)
                if offset is not None:
                    found[write.key][write.value].add(offset)
        return found

    @cached_property
    def committed_log(self) -> dict[str, list[tuple[int, str, Transaction]]]:
        """The committed values of each key, in the order of the first known offset of each."""
        log: dict[str, list[tuple[int, str, Transaction]]] = {}
        for key, values in self.known_offsets.items():
            log[key] = sorted(
                (
                    (min(offsets), value, writer)
                    for value, offsets in values.items()
                    if (writer := self.writer_of.get(Write(key, value))) and writer.is_committed
                ),
                key=lambda entry: entry[:2],
            )
        return log

    def reads(self) -> Iterator[tuple[str, int, Read]]:
        """Yield (reader, time, read) of every read, the final ones too."""
        for poll in self.polls:
            for key, pairs in poll.values.items():
                for offset, value in pairs:
                    yield poll.process, poll.time, Read(key, offset, value)
        if self.final is not None:
            for key, pairs in self.final.values.items():
                for offset, value in pairs:
                    yield "the final reader", self.final.time, Read(key, offset, value)

    def _all_reads(self) -> Iterator[tuple[str, int, str]]:
        for _, _, read in self.reads():
            yield read.key, read.offset, read.value


def _pairs(value: dict[str, list[list[object]]]) -> dict[str, tuple[tuple[int, str], ...]]:
    return {
        key: tuple((int(str(offset)), str(one)) for offset, one in pairs)
        for key, pairs in value.items()
    }


def _invoked(event: Event) -> Transaction:
    writes: list[Write] = []
    reads: list[Read] = []
    for step in event.more["value"]:
        if step[0] == "send":
            writes.append(Write(step[1], step[2]))
        else:
            reads += [
                Read(key, offset, value)
                for key, pairs in _pairs(step[1]).items()
                for offset, value in pairs
            ]
    return Transaction(
        process=event.process,
        op=event.op,
        transactional_id=event.more.get("transactional_id", event.process),
        invoked=event.time,
        writes=tuple(writes),
        reads=tuple(reads),
        group=event.more.get("group"),
        plain=event.more.get("plain", False),
    )


_ENDS: Final = {
    "ok": Outcome.COMMITTED,
    "fail": Outcome.ABORTED,
    "info": Outcome.INDETERMINATE,
}


def _continue(one: Transaction, event: Event) -> None:
    one.acks.update(event.more.get("acks", {}))
    if event.type == "committing":
        one.committing = event.time
        one.outcome = Outcome.INDETERMINATE
    else:
        one.outcome = _ENDS[event.type]
        one.ended = event.time
        one.error = event.more.get("error", "")


def assemble(events: Sequence[Event]) -> History:
    """Put a history together. Raises KeyError for an end without a beginning."""
    transactions: dict[tuple[str, int], Transaction] = {}
    polls: list[Poll] = []
    final = None
    streams: dict[str, int] = defaultdict(int)
    for event in events:
        if event.f == "txn" and event.type == "invoke":
            transactions[event.process, event.op] = _invoked(event)
        elif event.f == "txn":
            _continue(transactions[event.process, event.op], event)
        elif event.f == "assign":
            streams[event.process] += 1
        elif event.f == "poll":
            polls.append(
                Poll(
                    process=event.process,
                    time=event.time,
                    stream=streams[event.process],
                    values=_pairs(event.more["value"]),
                )
            )
        elif event.f == "final":
            final = FinalRead(
                time=event.time,
                values=_pairs(event.more["value"]),
                stable=event.more.get("stable", {}),
                ends=event.more.get("ends", {}),
                resent=frozenset(
                    Write(key, value)
                    for key, values in event.more.get("resent", {}).items()
                    for value in values
                ),
            )
    history = History(
        transactions=list(transactions.values()),
        polls=polls,
        final=final,
        processes=len({event.process for event in events}),
    )
    _mark_seen(history)
    return history


def _mark_seen(history: History) -> None:
    for key, values in history.read_offsets.items():
        for value in values:
            writer = history.writer_of.get(Write(key, value))
            if writer is not None:
                writer.is_seen = True


def committed(transactions: Iterable[Transaction]) -> list[Transaction]:
    """Return those that are known to be committed."""
    return [one for one in transactions if one.is_committed]
