"""What a replica has to drop before it can follow its leader, decided without touching a log.

A replica may hold records that its leader does not have: it was cut off while it led, or the leader
lost its end. Leader epochs say where the two logs part (KIP-101, KIP-320; S-READ-12): each epoch
had one leader, so what two logs hold of one epoch is the same, as far as the shorter one goes.

The leader's side answers where its records of an epoch end (`end_of_epoch`), and tells a fetching
replica when they end below what that replica has (`divergence`). The replica's side
(`truncation_for`) turns one such answer into a `Truncation`, with a reason:

A. The leader knows no epoch as high as the asked one, or none at all: only what is known to be
   replicated stays, which the caller names.
B. The replica holds the answered epoch, or only higher ones: both logs agree up to where that epoch
   ends first.
C. The replica holds lower epochs and not the answered one: what it has above them is not the
   leader's. What it has of them may not be either, so the leader is asked about those next.
D. What is left ends below the leader's first record: nothing would join on, so the replica drops
   everything and starts there.

`truncation_between` asks until an answer is final, for two logs of one broker (a copy that is moved
between directories). S-READ-13; after `AbstractFetcherThread.getOffsetTruncationState` and
`LocalLeaderEndPoint.fetchEpochEndOffsets`.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from protocol.errors import ErrorCode, KafkaError

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class EpochEnd(NamedTuple):
    """Where the records of a leader epoch end in a log; (-1, -1) when that is not known."""

    epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        """Whether both numbers mean something."""
        return self.epoch != UNDEFINED_EPOCH and self.end_offset != UNDEFINED_OFFSET


class EpochTable(Protocol):
    """What is asked of `storage.epochs.LeaderEpochCache`."""

    @property
    def latest_epoch(self) -> int | None:
        """The last epoch with an entry."""
        ...

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and where it ends; (-1, -1) if unknown."""
        ...


class LogEnds(Protocol):
    """What is asked of a `storage.log.log.Log`."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that is visible."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def leader_epochs(self) -> EpochTable:
        """Which epoch began where."""
        ...


class TruncationReason(Enum):
    """Why a replica drops what it drops, or nothing."""

    AGREES = auto()
    """It is as the leader's log is, as far as it goes."""
    DIVERGED = auto()
    """It has records that the leader does not have, or has others instead (B, C)."""
    NO_EPOCHS = auto()
    """The leader could not say where the epoch ends: what may not be replicated goes (A)."""
    BELOW_LEADER_START = auto()
    """The leader has deleted what would join on (D)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What a replica does to its log before it fetches again."""

    reason: TruncationReason
    offset: int
    """Where its log ends afterwards."""
    starts_anew: bool = False
    """Everything goes, and the log begins at `offset`."""
    ask_next: int | None = None
    """The epoch to ask the leader about after this; None: the replica may fetch."""

    @property
    def changes_log(self) -> bool:
        """Whether anything goes."""
        return self.reason is not TruncationReason.AGREES


# ---- the leader's side


def end_of_epoch(leader: LogEnds, current_epoch: int, asked: int) -> EpochEnd:
    """Where the records of `asked` end (OffsetForLeaderEpoch, S-READ-12).

    The current epoch ends at the log end offset, also before its first append.
    """
    if asked == current_epoch:
        return EpochEnd(asked, leader.log_end_offset)
    return EpochEnd(*leader.leader_epochs.end_offset_for(asked, leader.log_end_offset))


def divergence(answer: EpochEnd, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
    """`answer`, if it ends below what a replica has that fetches at `fetch_offset`, else None.

    `answer` is `end_of_epoch` for the epoch of the replica's last record. Raises KafkaError
    OFFSET_OUT_OF_RANGE when that epoch is not known (KIP-595).
    """
    if not answer.is_known:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"The end offset of epoch {last_fetched_epoch} is not known.",
        )
    if answer.epoch < last_fetched_epoch or answer.end_offset < fetch_offset:
        return answer
    return None


# ---- the replica's side


def truncation_for(
    answer: EpochEnd, replica: LogEnds, *, replicated: int, leader_start: int = 0
) -> Truncation:
    """What `replica` drops for the leader's `answer` about its latest epoch, or the one asked last.

    `replicated`: the offset below which the replica's records are known to be the leader's (the
    high watermark). `leader_start`: where the leader's log begins, if the replica knows.
    """
    end = replica.log_end_offset
    latest = replica.leader_epochs.latest_epoch
    reason = TruncationReason.DIVERGED
    ask_next = None
    if latest is None or not answer.is_known:  # A
        agreed, reason = replicated, TruncationReason.NO_EPOCHS
    else:
        epoch = min(answer.epoch, latest)
        own = EpochEnd(*replica.leader_epochs.end_offset_for(epoch, end))
        if own.epoch == answer.epoch:  # B
            agreed = min(own.end_offset, answer.end_offset)
        else:  # C
            agreed, ask_next = own.end_offset, own.epoch
    if min(agreed, end) < leader_start:  # D
        return Truncation(
            reason=TruncationReason.BELOW_LEADER_START, offset=leader_start, starts_anew=True
        )
    if agreed >= end:
        reason = TruncationReason.AGREES
    return Truncation(reason=reason, offset=min(agreed, end), ask_next=ask_next)


def truncation_between(leader: LogEnds, replica: LogEnds, *, replicated: int) -> Truncation:
    """The same for two logs at hand: asks until the answer is final."""
    asked = replica.leader_epochs.latest_epoch
    if asked is None:
        asked = UNDEFINED_EPOCH
    while True:
        end = leader.leader_epochs.end_offset_for(asked, leader.log_end_offset)
        found = truncation_for(
            EpochEnd(*end), replica, replicated=replicated, leader_start=leader.log_start_offset
        )
        if found.ask_next is None:
            return found
        asked = found.ask_next
