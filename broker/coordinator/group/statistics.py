"""The group coordinator in numbers, for metrics and tests."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.runtime.loading import LoadStatistics


class GroupCounters:
    """The counters of a `GroupCoordinator`, since the start."""

    __slots__ = (
        "commit_failures",
        "commits",
        "completed_rebalances",
        "deleted_offsets",
        "expired_offsets",
        "rebalances",
        "transactional_commits",
    )

    def __init__(self) -> None:
        self.commits = 0
        """Offsets committed."""
        self.transactional_commits = 0
        """Offsets written within transactions, however those ended."""
        self.commit_failures = 0
        """Offsets that could not be written."""
        self.expired_offsets = 0
        self.deleted_offsets = 0
        """By request, or because their topic or group was deleted."""
        self.completed_rebalances = 0
        self.rebalances: dict[str, int] = {}
        """Rebalances begun, by reason."""

    def count_rebalance(self, reason: str) -> None:
        """Count one rebalance that has begun."""
        self.rebalances[reason] = self.rebalances.get(reason, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """Numbers for metrics and tests."""

    groups: dict[str, int]
    """By state; every state has an entry (Kafka's NumGroups…)."""
    offsets: int
    """Committed offsets in memory (NumOffsets)."""
    counters: GroupCounters
    """The coordinator's own, which go on counting."""
    timers: int
    loading: LoadStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """The offsets that one group has committed."""

    group_id: str
    members: int
    offsets: Mapping[str, Mapping[int, CommittedOffset]]
    """By topic and partition. The coordinator's own dicts: read them before the next checkpoint."""
