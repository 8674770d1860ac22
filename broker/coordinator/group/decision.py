"""The decision of a shard of the group coordinator, and the timers that it sets.

A decision changes the soft state of the group in memory (parked requests, running sessions), and
collects in a `GroupDecision` all effects beyond it. The runtime carries them out in this order:

1. Set `timers` and give `answers`: none of them depends on the write.
2. Append the records of `writing`, and replay them when they are durable. Then call its `then`, if
   any, with the code of the write: it collects what follows in a decision of its own, such as
   answers that must wait until the records are durable.
"""

from enum import Enum
from typing import NamedTuple

from broker.coordinator.group.data.records import GroupRecord
from broker.coordinator.runtime.decision import Decision


class TimerKind(Enum):
    """The meaning of a timer that fires."""

    SESSION = "session"
    """The session timeout of a member or pending id is over."""
    JOIN = "join"
    """The rebalance timeout is over: members that have not rejoined are removed."""
    INITIAL_JOIN = "initial join"
    """group.initial.rebalance.delay.ms is over."""
    SYNC = "sync"
    """The rebalance timeout of the second phase: members that have not synced are removed."""


class GroupTimer(NamedTuple):
    """One timer to set; setting a timer with the same `key` replaces it.

    A tuple, because every heartbeat makes one, and a frozen dataclass takes three times as long.
    """

    kind: TimerKind
    group_id: str
    delay_ms: int
    member_id: str = ""
    generation: int = -1
    """SYNC: the generation it belongs to."""
    remaining_ms: int = 0
    """INITIAL_JOIN: how much longer the delay may be extended."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity; both kinds of join timer share one key per group."""
        if self.kind is TimerKind.SESSION:
            return ("session", self.group_id, self.member_id)
        return ("sync" if self.kind is TimerKind.SYNC else "join", self.group_id, "")


def session_timer(group_id: str, member_id: str, timeout_ms: int) -> GroupTimer:
    """The timer that ends the session of a member or pending id in `timeout_ms`."""
    return GroupTimer(TimerKind.SESSION, group_id, timeout_ms, member_id)


def session_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    """The key of a member's session timer."""
    return ("session", group_id, member_id)


def join_key(group_id: str) -> tuple[str, str, str]:
    """The key of a group's join timer."""
    return ("join", group_id, "")


def sync_key(group_id: str) -> tuple[str, str, str]:
    """The key of a group's sync timer."""
    return ("sync", group_id, "")


class RebalanceReason(Enum):
    """Why a group began to rebalance; counted in the metrics."""

    MEMBER_JOINED = "a new member joined"
    MEMBER_CHANGED = "a member changed its metadata"
    LEADER_REJOINED = "the leader joined again"
    STATIC_MEMBER_REPLACED = "a static member came back while the group was rebalancing"
    PROTOCOL_CHANGED = "a static member came back and changes the group's protocol"
    MEMBER_LEFT = "a member left"
    SESSION_EXPIRED = "a member's session expired"
    SYNC_EXPIRED = "a member sent no SyncGroup in time"
    WRITE_FAILED = "the assignment could not be stored"
    OVER_CAPACITY = "the group is larger than group.max.size allows"


class GroupDecision(Decision[GroupRecord]):
    """The effects of a decision: filled by the shard, carried out by the runtime."""

    __slots__ = ()
