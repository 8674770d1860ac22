"""The role of this broker for a partition: leader, follower or offline, by the metadata image.

A frozen value: a change makes a new one, which the `Partition` swaps in whole, so no reader sees
the epoch of one leader with the replicas of another. After Kafka's `PartitionState`.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from broker.cluster.image import PartitionImage
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
    image: PartitionImage
    """What the image has of it: leader, epoch, replicas, ISR."""
    error: ErrorCode
    """The answer to requests, which are not served; NONE (falsy) for a leader only."""

    def offline(self, error: ErrorCode) -> "PartitionState":
        """The same partition, no longer served; requests get `error`."""
        return replace(self, role=Role.OFFLINE, error=error)


def leading(image: PartitionImage) -> PartitionState:
    """The state in which this broker leads."""
    return PartitionState(Role.LEADER, image, ErrorCode.NONE)


def following(image: PartitionImage) -> PartitionState:
    """The state in which another broker leads, or none."""
    return PartitionState(Role.FOLLOWER, image, ErrorCode.NOT_LEADER_OR_FOLLOWER)
