"""The role of this broker for a partition: leader, follower or offline, with epoch and replicas.

A frozen value: a change makes a new one, which the `Partition` swaps in whole, so no reader sees
the epoch of one leader with the replicas of another. After Kafka's `PartitionState` and
`LeaderAndIsr`.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from protocol.errors import ErrorCode


class Role(Enum):
    """What this broker does for a partition."""

    LEADER = auto()
    """Takes appends and answers reads."""
    FOLLOWER = auto()
    """Another broker leads, or none."""
    OFFLINE = auto()
    """The partition was deleted or its disk failed, as `error` says."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's leadership as this broker knows it. Made by `leading`, `following` and
    `offline`."""

    role: Role
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    """Broker ids, the preferred leader first."""
    isr: tuple[int, ...]
    """The replicas whose log ends bound the high watermark."""
    error: ErrorCode
    """The answer to requests, which are not served; NONE (falsy) for a leader only."""

    def offline(self, error: ErrorCode) -> "PartitionState":
        """The same partition, no longer served; requests get `error`."""
        return replace(self, role=Role.OFFLINE, error=error)


def leading(
    broker_id: int, leader_epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionState:
    """The state in which this broker leads."""
    return PartitionState(Role.LEADER, broker_id, leader_epoch, replicas, isr, ErrorCode.NONE)


def following(
    leader_id: int, leader_epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionState:
    """The state in which another broker leads, or none (-1)."""
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return PartitionState(Role.FOLLOWER, leader_id, leader_epoch, replicas, isr, error)
