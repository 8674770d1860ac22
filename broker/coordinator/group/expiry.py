"""When committed offsets have outlived their retention. Pure (S-GRP-4, KIP-211).

An explicit expire time (commits of OffsetCommit v2-4) rules; else `offsets.retention.minutes`
count from when the group became Empty, for a simple group from the commit, for a stable consumer
group from the commit but only for topics nobody subscribes to; during a rebalance nothing expires.
After Kafka's `OffsetExpirationCondition`.
"""

from enum import Enum

from broker.coordinator.group.classic.group import Group
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.offsets import CommittedOffset


class ExpiryBase(Enum):
    """From when the retention of a group's offsets counts."""

    GROUP_EMPTY = "the group has been empty"
    COMMIT = "the offset was committed"
    NEVER = "the group is in use"


def expiry_base(group: Group) -> ExpiryBase:
    """Which rule holds for a group as it stands (KIP-211)."""
    if group.protocol_type is None:
        return ExpiryBase.COMMIT
    if group.state is GroupState.EMPTY:
        return ExpiryBase.GROUP_EMPTY
    if (
        group.state is GroupState.STABLE
        and group.uses_consumer_protocol
        and group.subscribed_topics is not None
    ):
        return ExpiryBase.COMMIT
    return ExpiryBase.NEVER


class ExpiryCheck:
    """Which offsets of a group have outlived their retention; made anew for each group and run."""

    __slots__ = ("_base", "_deadline", "_empty_since", "_now_ms")

    def __init__(self, group: Group, now_ms: int, retention_ms: int) -> None:
        self._base = expiry_base(group)
        self._now_ms = now_ms
        self._deadline = now_ms - retention_ms
        """Whose retention began then or earlier is over."""
        self._empty_since = (
            group.state_timestamp_ms if self._base is ExpiryBase.GROUP_EMPTY else None
        )

    def is_expired(self, committed: CommittedOffset) -> bool:
        """Whether the retention of one offset of the group is over."""
        if self._base is ExpiryBase.NEVER:
            return False
        if committed.expire_timestamp_ms is not None:
            return self._now_ms >= committed.expire_timestamp_ms
        since = committed.commit_timestamp_ms if self._empty_since is None else self._empty_since
        return since <= self._deadline
