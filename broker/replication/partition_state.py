"""The role of this broker for a partition: leader, follower or offline, by the metadata image.

A frozen value: a change makes a new one, which the `Partition` swaps in whole, so no reader sees
the epoch of one leader with the replicas of another. After Kafka's `PartitionState`.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from broker.cluster.image import PartitionImage
from protocol.errors import ErrorCode


class Role(Enum):
    """This broker's role for a partition."""

    LEADER = auto()
    """Takes appends and answers reads."""
    FOLLOWER = auto()
    """Another broker leads, or none."""
    OFFLINE = auto()
    """The partition was deleted or its disk failed, as `error` says."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingIsr:
    """An ISR that the leader has proposed; compared by identity. See `broker.replication.isr`."""

    isr: tuple[int, ...]
    """The replicas that would be in sync."""
    shrinks: bool
    """Whether it leaves replicas out; else it adds one."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition's leadership as this broker knows it. Made by `leading`, `following` and
    `offline`."""

    role: Role
    image: PartitionImage
    """The partition in the metadata image: leader, epoch, replicas, ISR."""
    error: ErrorCode
    """The answer to requests, which are not served; NONE (falsy) for a leader only."""
    pending: PendingIsr | None = None
    """For leaders: the ISR that was proposed to the controller, until it answers."""

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        """The replicas that are in sync, or may be by the time the controller answers."""
        if self.pending is None or self.pending.shrinks:
            return self.image.isr
        return self.pending.isr

    def offline(self, error: ErrorCode) -> "PartitionState":
        """The same partition, no longer served; requests get `error`."""
        return replace(self, role=Role.OFFLINE, error=error, pending=None)


def leading(image: PartitionImage) -> PartitionState:
    """The state in which this broker leads."""
    return PartitionState(Role.LEADER, image, ErrorCode.NONE)


def following(image: PartitionImage) -> PartitionState:
    """The state in which another broker leads, or none."""
    return PartitionState(Role.FOLLOWER, image, ErrorCode.NOT_LEADER_OR_FOLLOWER)
