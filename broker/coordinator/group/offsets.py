"""Committed offsets as data: what is committed, what is on its way, what may expire.

Pure, like `state.py`. `shard.py` puts records here, the same way from a running commit and from
the log.

Rules

* An offset becomes visible when its record is durable (`put`), not when it was asked for. While
  a write is on its way the partition is *in flight*, and is not expired under it (KIP-211).
* Offsets inside a transaction wait under their producer id until the marker comes; commit shows
  them, abort drops them. Between a plain and a transactional commit the later *record* wins, for
  compaction keeps the later record too (Kafka's `OffsetMetadataManager`).
* Expiry (S-GRP-4, KIP-211): an explicit expire time (commits of OffsetCommit v2-4) rules; else
  `offsets.retention.minutes` count from when the group became Empty, for a simple group from the
  commit, for a stable consumer group from the commit but only for topics nobody subscribes to;
  during a rebalance nothing expires.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from broker.coordinator.group.state import Group, GroupState

NO_OFFSET = -1
"""What a partition without a committed offset is answered with."""
NO_LEADER_EPOCH = -1

OffsetKey = tuple[str, str, int]
"""(group id, topic, partition)"""


@dataclass(slots=True, kw_only=True)
class CommittedOffset:
    """One committed offset. Not frozen, for that costs two microseconds each; nobody changes one
    but replay, which notes where the record lies."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    """Only where the client asked for its own retention."""
    topic_id: bytes | None = None
    """The topic the offset was committed for, where the record says."""
    record_offset: int = -1
    """Where the record lies in `__consumer_offsets`; -1 while that is not known."""


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


class OffsetStore:
    """All committed offsets of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._count = 0
        self._in_flight: Counter[OffsetKey] = Counter()
        self._transactions: dict[int, dict[OffsetKey, CommittedOffset]] = {}

    def __len__(self) -> int:
        return self._count

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """topic -> partition -> offset; to be read, not changed."""
        return self._groups.get(group_id, {})

    def group_ids(self) -> Iterator[str]:
        """Groups that have at least one offset."""
        return iter(self._groups)

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        """The visible offset of one partition."""
        group_id, topic, partition = key
        topics = self._groups.get(group_id)
        if topics is None:
            return None
        partitions = topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, key: OffsetKey, committed: CommittedOffset) -> None:
        """Make an offset visible."""
        group_id, topic, partition = key
        partitions = self._groups.setdefault(group_id, {}).setdefault(topic, {})
        if partition not in partitions:
            self._count += 1
        partitions[partition] = committed

    def remove(self, key: OffsetKey) -> bool:
        """Forget an offset, also where it waits in a transaction; whether one was visible."""
        for pending in self._transactions.values():
            pending.pop(key, None)
        group_id, topic, partition = key
        topics = self._groups.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return False
        self._count -= 1
        if not partitions:
            del topics[topic]
        if not topics:
            del self._groups[group_id]
        return True

    # ---- writes on their way

    def begin_write(self, keys: list[OffsetKey]) -> None:
        """Records for these partitions have been handed to the log."""
        self._in_flight.update(keys)

    def end_write(self, keys: list[OffsetKey]) -> None:
        """They are durable or have failed."""
        for key in keys:
            self._in_flight[key] -= 1
            if self._in_flight[key] <= 0:
                del self._in_flight[key]

    def in_flight_keys(self, group_id: str) -> list[OffsetKey]:
        """Partitions of a group with a commit that is being written."""
        return [key for key in self._in_flight if key[0] == group_id]

    def is_in_flight(self, key: OffsetKey) -> bool:
        """A commit of this partition is being written."""
        return key in self._in_flight

    # ---- transactions

    def put_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """An offset inside an open transaction."""
        self._transactions.setdefault(producer_id, {})[key] = committed

    def drop_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """The record of a pending offset could not be written."""
        pending = self._transactions.get(producer_id)
        if pending is not None and pending.get(key) is committed:
            del pending[key]
            if not pending:
                del self._transactions[producer_id]

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """The marker came: show or drop what the producer committed."""
        for key, committed in self._transactions.pop(producer_id, {}).items():
            if commit:
                existing = self.get(key)
                if existing is None or committed.record_offset > existing.record_offset:
                    self.put(key, committed)

    @property
    def has_transactions(self) -> bool:
        """Any transaction is open."""
        return bool(self._transactions)

    def pending_keys(self, group_id: str) -> list[OffsetKey]:
        """Partitions of a group with an offset in an open transaction."""
        return [
            key for pending in self._transactions.values() for key in pending if key[0] == group_id
        ]

    def is_pending(self, key: OffsetKey) -> bool:
        """An open transaction holds an offset of this partition."""
        return any(key in pending for pending in self._transactions.values())

    def has_open_transaction(self, group_id: str) -> bool:
        """A group must not vanish under an open transaction."""
        return any(key[0] == group_id for pending in self._transactions.values() for key in pending)

    def _check(self) -> None:
        """Invariants, for tests."""
        assert self._count == sum(
            len(partitions) for topics in self._groups.values() for partitions in topics.values()
        )
        assert all(topics and all(topics.values()) for topics in self._groups.values())
        assert all(count > 0 for count in self._in_flight.values())
