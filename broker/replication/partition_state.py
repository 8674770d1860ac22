"""What this broker is for a partition at one moment: leader, follower, or neither, and since when.

A value: a change makes a new one, and the `Partition` swaps it whole, so nobody ever sees the epoch
of one leader with the replicas of another. After `PartitionState` and `LeaderAndIsr` of Kafka.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from protocol.errors import ErrorCode


class Role(Enum):
    """What this broker does for a partition."""

    LEADER = auto()
    """Takes appends and answers reads."""
    FOLLOWER = auto()
    """Has a replica that another broker leads."""
    OFFLINE = auto()
    """Neither: the partition was deleted or its disk failed, as `error` says."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's leadership, as far as this broker has been told. Made by `leading`, `following`
    and `offline`."""

    role: Role
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    """Broker ids, the preferred leader first."""
    isr: tuple[int, ...]
    """The replicas whose log ends bound the high watermark."""
    error: ErrorCode
    """What a request is told instead of being served; NONE (falsy) for a leader only."""

    def offline(self, error: ErrorCode) -> "PartitionState":
        """The same partition, served no more; requests are told `error`."""
        return replace(self, role=Role.OFFLINE, error=error)


def leading(
    broker_id: int, leader_epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionState:
    """This broker leads."""
    return PartitionState(Role.LEADER, broker_id, leader_epoch, replicas, isr, ErrorCode.NONE)


def following(
    leader_id: int, leader_epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionState:
    """Another broker leads, or none (-1)."""
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionState(Role.FOLLOWER, leader_id, leader_epoch, replicas, isr, error)
