"""Committed offsets as data: visible ones, and those pending in a transaction.

Pure. `offset_manager.py` puts records here when they are durable, whether from a commit or loaded
from the log.

Rules

* An offset becomes visible when its record is durable (`put`), not when the commit is requested.
* Offsets inside a transaction are pending under their producer id until the marker comes: a commit
  shows them, an abort drops them. Between a plain and a transactional commit the later *record*
  wins, because compaction keeps the later record too (Kafka's `OffsetMetadataManager`).
"""

from collections.abc import Iterator

from broker.coordinator.group.data.offsets import CommittedOffset, OffsetKey


class OffsetStore:
    """All committed offsets of one partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._count = 0
        self._transactions: dict[int, dict[OffsetKey, CommittedOffset]] = {}

    def __len__(self) -> int:
        return self._count

    def of_group(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """topic -> partition -> offset; the store's own dicts, which the caller must not change."""
        return self._groups.get(group_id, {})

    def group_ids(self) -> Iterator[str]:
        """Ids of groups that have at least one visible offset."""
        return iter(self._groups)

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        """The visible offset of one partition, or None."""
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

    def put_if_later(self, key: OffsetKey, committed: CommittedOffset) -> None:
        """Make an offset of a transaction visible, unless a later record already is."""
        existing = self.get(key)
        if existing is None or committed.record_offset > existing.record_offset:
            self.put(key, committed)

    def remove(self, key: OffsetKey) -> bool:
        """Remove an offset, pending ones too; return whether one was visible."""
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

    # ---- transactions

    def put_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """Note an offset inside an open transaction."""
        self._transactions.setdefault(producer_id, {})[key] = committed

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """The marker came: show or drop the producer's pending offsets."""
        for key, committed in self._transactions.pop(producer_id, {}).items():
            if commit:
                self.put_if_later(key, committed)

    @property
    def has_transactions(self) -> bool:
        """Whether any transaction with pending offsets is open."""
        return bool(self._transactions)

    def pending_keys(self, group_id: str) -> list[OffsetKey]:
        """Partitions of a group with an offset in an open transaction."""
        return [key for key in self.all_pending_keys() if key[0] == group_id]

    def all_pending_keys(self) -> Iterator[OffsetKey]:
        """Partitions with an offset in an open transaction; one for each transaction."""
        for pending in self._transactions.values():
            yield from pending

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction holds an offset of this partition."""
        return any(key in pending for pending in self._transactions.values())

    def has_open_transaction(self, group_id: str) -> bool:
        """Whether an open transaction holds an offset of the group, which must then stay."""
        return any(key[0] == group_id for pending in self._transactions.values() for key in pending)

    def _check(self) -> None:
        """Invariants, for tests."""
        assert self._count == sum(
            len(partitions) for topics in self._groups.values() for partitions in topics.values()
        )
        assert all(topics and all(topics.values()) for topics in self._groups.values())
