"""Committed offsets as data: what is committed, what waits for the end of its transaction.

Pure. `offset_manager.py` puts records here, the same way from a running commit and from
the log.

Rules

* An offset becomes visible when its record is durable (`put`), not when it was asked for.
* Offsets inside a transaction wait under their producer id until the marker comes; commit shows
  them, abort drops them. Between a plain and a transactional commit the later *record* wins, for
  compaction keeps the later record too (Kafka's `OffsetMetadataManager`).
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

    def put_if_later(self, key: OffsetKey, committed: CommittedOffset) -> None:
        """Make an offset of a transaction visible, unless a later record is."""
        existing = self.get(key)
        if existing is None or committed.record_offset > existing.record_offset:
            self.put(key, committed)

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

    # ---- transactions

    def put_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """An offset inside an open transaction."""
        self._transactions.setdefault(producer_id, {})[key] = committed

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """The marker came: show or drop what the producer committed."""
        for key, committed in self._transactions.pop(producer_id, {}).items():
            if commit:
                self.put_if_later(key, committed)

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
