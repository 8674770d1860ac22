"""The group coordinator in numbers, for metrics and tests."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.runtime.loading import LoadStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """A snapshot; counters count since the start of the broker."""

    groups: dict[str, int]
    """By state; every state has an entry (Kafka's NumGroups…)."""
    offsets: int
    """Committed offsets in memory (NumOffsets)."""
    commits: int
    """Offsets committed."""
    transactional_commits: int
    """Offsets written within transactions, however those ended."""
    commit_failures: int
    """Offsets that could not be written."""
    expired_offsets: int
    deleted_offsets: int
    """By request, or because their topic or group was deleted."""
    rebalances: dict[str, int]
    """Rebalances begun, by reason."""
    completed_rebalances: int
    timers: int
    loading: LoadStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsets:
    """What one group has committed."""

    group_id: str
    members: int
    offsets: Mapping[str, Mapping[int, CommittedOffset]]
    """By topic and partition. The coordinator's own dicts: read them before the next checkpoint."""


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
        self.transactional_commits = 0
        self.commit_failures = 0
        self.expired_offsets = 0
        self.deleted_offsets = 0
        self.completed_rebalances = 0
        self.rebalances: dict[str, int] = {}

    def count_rebalance(self, reason: str) -> None:
        """Count one rebalance that has begun."""
        self.rebalances[reason] = self.rebalances.get(reason, 0) + 1
