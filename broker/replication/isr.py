"""The replicas in sync: when a leader changes the ISR, and the controller's answers. Pure.

The ISR of a partition is the controller's. A leader proposes another one by AlterPartition and has
at most one proposal under way for a partition (KIP-497). Until it knows the outcome it counts with
both: a replica that it proposed to add already bounds the high watermark, and one that it proposed
to remove still does (the *maximal* ISR); `min.insync.replicas` is held against the ISR that the
controller has confirmed.

Expansion (`expansion`). A replica joins if it has everything below the high watermark *and* the
start of the leader's epoch. The second rule matters after an election, when the high watermark may
lie far behind: a replica that joined then could lack records that were acknowledged before.

Shrinking (`shrinking`). A replica leaves that was not at the log end within the last
`replica.lag.time.max.ms` (`follower_progress`).

Answers (`settled`). After an error that says "not done, and your state is right" the leader goes
back to the confirmed ISR and may propose anew. After one that says "your state is old" the outcome
is unknown, so the leader keeps counting with both until the controller sends it the new state.
After any other error it sends the same proposal again.

After `kafka.cluster.Partition` (`maybeExpandIsr`, `maybeShrinkIsr`, `handleAlterPartitionError`,
`handleAlterPartitionUpdate`).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final

from broker.replication.partition_state import PartitionState, PendingIsr, Role
from protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRules:
    """The rules for the leader of a partition in a cluster; a stand-alone broker has none."""

    monotonic: Callable[[], float]
    """Seconds."""
    lag_time_s: float
    """`replica.lag.time.max.ms`, in seconds."""
    may_join: Callable[[int], bool]
    """Whether a broker may be in an ISR: it must be alive."""
    alter_isr: Callable[[Any, PendingIsr], None]
    """Sends a proposal of a `Partition` to the controller (`IsrKeeper.send`)."""


@dataclass(slots=True)
class IsrStatistics:
    """Counts since the start (`kafka.server:type=ReplicaManager`)."""

    shrinks: int = 0
    """`IsrShrinksPerSec`."""
    expands: int = 0
    """`IsrExpandsPerSec`."""
    failed_updates: int = 0
    """`FailedIsrUpdatesPerSec`."""


class IsrHold(Enum):
    """Why the ISR is left as it is."""

    MEMBER = auto()
    """The replica is in it."""
    IN_FLIGHT = auto()
    """A proposal is under way."""
    BEHIND_WATERMARK = auto()
    """The replica lacks records that consumers may have seen."""
    BEHIND_EPOCH = auto()
    """The replica lacks records from before this leader's epoch."""
    NOT_ELIGIBLE = auto()
    """Its broker is not alive."""
    ALL_CAUGHT_UP = auto()
    """Nobody lags."""


def expansion(
    state: PartitionState,
    replica: int,
    *,
    end_offset: int,
    high_watermark: int,
    epoch_start: int,
    may_join: Callable[[int], bool],
) -> PendingIsr | IsrHold:
    """Return the ISR with `replica`, whose log ends at `end_offset`, or why it does not join."""
    isr = state.image.isr
    if replica in isr:
        return IsrHold.MEMBER
    if state.pending is not None:
        return IsrHold.IN_FLIGHT
    if end_offset < high_watermark:
        return IsrHold.BEHIND_WATERMARK
    if end_offset < epoch_start:
        return IsrHold.BEHIND_EPOCH
    if not may_join(replica):
        return IsrHold.NOT_ELIGIBLE
    return PendingIsr((*isr, replica), shrinks=False)


def shrinking(state: PartitionState, lagging: Collection[int]) -> PendingIsr | IsrHold:
    """Return the ISR without the `lagging` replicas, or why it stays."""
    if state.pending is not None:
        return IsrHold.IN_FLIGHT
    isr = state.image.isr
    left = tuple(replica for replica in isr if replica not in lagging)
    if len(left) == len(isr):
        return IsrHold.ALL_CAUGHT_UP
    return PendingIsr(left, shrinks=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrAnswer:
    """The controller's answer to a proposal."""

    error: int = ErrorCode.NONE
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


class IsrOutcome(Enum):
    """The outcome of a proposal."""

    CONFIRMED = auto()
    """The ISR is the one in the answer."""
    REFUSED = auto()
    """The change was not made; the confirmed ISR holds, and another may be proposed."""
    UNKNOWN = auto()
    """The leader's state is old; it waits until the controller sends it the new one."""
    RETRY = auto()
    """The same proposal is to be sent again."""
    SUPERSEDED = auto()
    """The leader has got a newer state from the controller; the answer does not count."""


_REFUSED: Final = frozenset((ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA))
_OLD_KNOWLEDGE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    )
)


def settled(
    state: PartitionState, sent: PendingIsr, answer: IsrAnswer
) -> tuple[PartitionState, IsrOutcome]:
    """Return the state after `answer` to `sent`, and the outcome of the proposal."""
    if state.pending is not sent or state.role is not Role.LEADER:
        return state, IsrOutcome.SUPERSEDED
    if answer.error in _REFUSED:
        return replace(state, pending=None), IsrOutcome.REFUSED
    if answer.error in _OLD_KNOWLEDGE:
        return state, IsrOutcome.UNKNOWN
    if answer.error:
        return state, IsrOutcome.RETRY
    image = state.image
    if answer.leader_epoch != image.leader_epoch or answer.partition_epoch < image.partition_epoch:
        return state, IsrOutcome.UNKNOWN
    image = replace(image, isr=answer.isr, partition_epoch=answer.partition_epoch)
    return replace(state, image=image, pending=None), IsrOutcome.CONFIRMED
