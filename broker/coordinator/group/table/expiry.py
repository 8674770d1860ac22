"""When committed offsets have outlived their retention. Pure (S-GRP-4, KIP-211).

An explicit expire time (from OffsetCommit v2-4) takes precedence. Otherwise
`offsets.retention.minutes` count from when the group became Empty, or from the commit: the group's
`expiry_base` says which, and whether anything may expire at all.
After Kafka's `OffsetExpirationCondition`.
"""

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.table.group import ExpiryBase, Group


class ExpiryCheck:
    """Tells which offsets of a group have expired; made for one group and one run."""

    __slots__ = ("_base", "_deadline", "_empty_since", "_now_ms")

    def __init__(self, group: Group, now_ms: int, retention_ms: int) -> None:
        self._base = group.expiry_base
        self._now_ms = now_ms
        self._deadline = now_ms - retention_ms
        """An offset whose retention began at this wall time or earlier has expired."""
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
