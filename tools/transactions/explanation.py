"""Explains what holds back the last stable offset of a partition, and what to do. Pure.

read_committed consumers read up to the last stable offset: the start of the first open transaction.
It is held back by one of these:

    (a) nothing: it is at the high watermark
    (b) an ongoing transaction, within its timeout
    (c) an ongoing transaction past its timeout: its coordinator is about to abort it
    (d) a decided transaction whose marker is not written in this partition yet
    (e) a hanging transaction: nobody will end it (`tools.transactions.hanging`)
    (f) no open transaction: a marker that is not replicated yet
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tools.log_ends import Place, place_name
from tools.magnitudes import duration
from tools.moments import iso_time
from tools.tables import number
from tools.transactions.hanging import Open


class Cause(Enum):
    """The causes (a) to (f) of the module docstring."""

    NOTHING = "nothing"
    GOES_ON = "open transaction"
    TIME_IS_UP = "transaction past its timeout"
    DECIDED = "decided transaction"
    HANGS = "hanging transaction"
    NOT_REPLICATED = "marker not replicated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A partition's last stable offset and its end."""

    place: Place
    stable: int
    end: int

    @property
    def held_back(self) -> int:
        """Number of offsets that read_committed consumers do not see yet."""
        return max(self.end - self.stable, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation for a person."""

    cause: Cause
    what: str
    remedy: str
    holder: Open | None


def explain(stability: Stability, opened: Sequence[Open], now_ms: int) -> Explanation:
    """Explain; `opened` are the partition's open transactions, the lowest start offset first."""
    if not stability.held_back:  # (a)
        return Explanation(
            cause=Cause.NOTHING,
            what=f"read_committed consumers can read all of it: {number(stability.end)} is the end",
            remedy="nothing is to be done",
            holder=None,
        )
    if not opened:  # (f)
        return Explanation(
            cause=Cause.NOT_REPLICATED,
            what="none is open; the end of the last one is not in all in-sync replicas yet",
            remedy="ask again; if it stays so, `pykafkalog cluster --health` names the replica",
            holder=None,
        )
    holder = opened[0]
    if holder.hangs is not None:  # (e)
        return Explanation(
            cause=Cause.HANGS,
            what=f"{_who(holder)} left a transaction open: {holder.hangs.value}",
            remedy="nobody will end it; abort it: " + abort_command(holder),
            holder=holder,
        )
    return _known(holder, now_ms)


def _known(holder: Open, now_ms: int) -> Explanation:
    transaction = holder.transaction
    assert transaction is not None
    if transaction.state != "Ongoing":  # (d)
        outcome = (
            "committed" if transaction.state in ("PrepareCommit", "CompleteCommit") else "aborted"
        )
        return Explanation(
            cause=Cause.DECIDED,
            what=f"{_who(holder)} has {outcome} it ({transaction.state}); the marker is on its way",
            remedy=f"ask again; if it stays so, see the log of broker {transaction.coordinator},"
            " which sends it",
            holder=holder,
        )
    since = now_ms if transaction.start_ms is None else transaction.start_ms
    left = since + transaction.timeout_ms - now_ms
    what = (
        f"{_who(holder)} has had a transaction open for {duration(now_ms - since)}"
        f" (since {iso_time(since)})"
    )
    if left > 0:  # (b)
        return Explanation(
            cause=Cause.GOES_ON,
            what=what,
            remedy=f"wait for its commit: broker {transaction.coordinator} aborts it in"
            f" {duration(left)}, when its timeout of {duration(transaction.timeout_ms)} is up."
            f" If the program is gone: {fence_command(holder)}",
            holder=holder,
        )
    return Explanation(  # (c)
        cause=Cause.TIME_IS_UP,
        what=f"{what}, longer than its timeout of {duration(transaction.timeout_ms)}",
        remedy=f"broker {transaction.coordinator} looks for such ones every few seconds; if it does"
        f" not abort it: {fence_command(holder)}",
        holder=holder,
    )


def abort_command(holder: Open) -> str:
    """Return the command that ends a hanging transaction in its partition."""
    start = holder.producer.start_offset
    place = place_name(holder.producer.place)
    return f"pykafkalog transactions --abort {place} --start-offset {start}"


def fence_command(holder: Open) -> str:
    """Return the command that ends a transaction which its coordinator knows."""
    return f"pykafkalog transactions --fence {holder.transactional_id}"


def _who(holder: Open) -> str:
    producer = f"producer {holder.producer.producer_id}, epoch {holder.producer.producer_epoch},"
    name = holder.transactional_id
    return f"{producer} transactional id {name}," if name else producer
