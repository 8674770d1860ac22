"""The truncation of a replica before it can follow its leader, decided without touching a log.

A replica may hold records that its leader does not have: it was cut off while it led, or the leader
lost the end of its log. Leader epochs tell where the two logs diverge (KIP-101, KIP-320;
S-READ-12): each epoch had one leader, so the records of one epoch are the same in two logs up to
the shorter one's end.

The leader's side answers where its records of an epoch end (`end_of_epoch`), and answers a fetching
replica whose log goes beyond that end (`divergence`). The replica's side (`truncation_for`) turns
one such answer into a `Truncation`, with a reason:

A. The leader does not know where the epoch ends, or the replica has no epochs: the replica keeps
   only records that are known to be replicated, which the caller names.
B. The replica holds the answered epoch, or only higher ones: both logs agree up to the lower of the
   two ends of that epoch.
C. The replica holds lower epochs and not the answered one: it drops its records above them. Its
   records of those epochs may not be the leader's either, so it asks the leader about them next.
D. The remaining log ends below the leader's log start: no record would follow it, so the replica
   drops everything and starts there.

`truncation_between` asks until an answer is final, for two logs of one broker (a copy that is moved
between directories). S-READ-13; after `AbstractFetcherThread.getOffsetTruncationState` and
`LocalLeaderEndPoint.fetchEpochEndOffsets`.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from protocol.errors import ErrorCode, KafkaError
from storage.epochs import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET


class EpochEnd(NamedTuple):
    """The end of a leader epoch's records in a log; (-1, -1) if unknown."""

    epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        """Whether neither number is undefined."""
        return self.epoch != UNDEFINED_EPOCH and self.end_offset != UNDEFINED_EPOCH_OFFSET


class EpochTable(Protocol):
    """The part of `storage.epochs.LeaderEpochCache` that is used here."""

    @property
    def latest_epoch(self) -> int | None:
        """The last epoch with an entry."""
        ...

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above `epoch`, and where it ends; (-1, -1) if unknown."""
        ...


class LogEnds(Protocol):
    """The part of `storage.log.log.Log` that is used here."""

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
    """Why a replica drops records, or none."""

    AGREES = auto()
    """Its log is a prefix of the leader's: nothing is dropped."""
    DIVERGED = auto()
    """It has records that the leader does not have, or others than the leader (B, C)."""
    NO_EPOCHS = auto()
    """The end of the epoch is unknown: records that may not be replicated are dropped (A)."""
    BELOW_LEADER_START = auto()
    """The leader has deleted the records that would follow (D)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The change of a replica's log before it fetches again."""

    reason: TruncationReason
    offset: int
    """The end of its log afterwards."""
    starts_anew: bool = False
    """Whether everything is dropped and the log begins at `offset`."""
    ask_next: int | None = None
    """The epoch to ask the leader about after this; None if the replica may fetch."""

    @property
    def changes_log(self) -> bool:
        """Whether anything is dropped."""
        return self.reason is not TruncationReason.AGREES


# ---- the leader's side


def end_of_epoch(leader: LogEnds, current_epoch: int, asked: int) -> EpochEnd:
    """Return where the records of epoch `asked` end (OffsetForLeaderEpoch, S-READ-12).

    The current epoch ends at the log end offset, even before its first append. In a log without
    any epoch it begins there too: the table of an empty one has no entry before its first append
    (`ReplicaManager`), but a replica may have led it in an earlier epoch, and written nothing.
    """
    if asked == current_epoch:
        return EpochEnd(asked, leader.log_end_offset)
    if leader.leader_epochs.latest_epoch is None and UNDEFINED_EPOCH < asked < current_epoch:
        return EpochEnd(asked, leader.log_end_offset)
    return EpochEnd(*leader.leader_epochs.end_offset_for(asked, leader.log_end_offset))


def divergence(answer: EpochEnd, last_fetched_epoch: int, fetch_offset: int) -> EpochEnd | None:
    """Return `answer` if a replica that fetches at `fetch_offset` has diverged, else None.

    `answer` is `end_of_epoch` for the epoch of the replica's last record. Raises KafkaError
    OFFSET_OUT_OF_RANGE if that epoch is unknown (KIP-595).
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
    """Return the truncation of `replica` after `answer` about its latest epoch, or the last asked.

    `replicated`: the offset below which the replica's records are known to be the leader's (the
    high watermark). `leader_start`: the leader's log start offset, if the replica knows it.
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
    """The same for two logs of this broker: ask until no epoch is left to ask about."""
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
