"""Committing, deleting and expiring offsets (Kafka's `OffsetMetadataManager`).

Each method decides which records are written, and `replay` applies them when they are durable;
until then nothing is visible (S-GRP-4). An offset in flight does not expire (KIP-211); in flight
within a transaction it counts as unstable, like one that is pending already (S-TXN-5). Pure.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from broker.coordinator.group.data.offsets import CommittedOffset, OffsetKey
from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
)
from broker.coordinator.group.data.values import (
    CommitRequest,
    PartitionCommit,
    TransactionalCommit,
)
from broker.coordinator.group.decision import GroupDecision
from broker.coordinator.group.table.expiry import ExpiryCheck
from broker.coordinator.group.table.group import Group
from broker.coordinator.group.table.group_table import GroupTable
from broker.coordinator.group.table.offset_store import OffsetStore
from broker.coordinator.runtime.in_flight import InFlight
from broker.coordinator.write_codes import commit_code
from protocol.errors import ErrorCode, KafkaError

_LAST_TIMESTAMP: Final = 2**63 - 1


class OffsetMetadataManager:
    """The committed offsets of a partition's groups, and every decision about them."""

    def __init__(
        self,
        groups: GroupTable,
        store: OffsetStore,
        in_flight: InFlight[GroupRecord],
        *,
        now_ms: Callable[[], int],
        retention_ms: int,
    ) -> None:
        self._groups = groups
        self._store = store
        self._in_flight = in_flight
        self._now_ms = now_ms
        self._retention_ms = retention_ms

    # ---- commits

    def commit(self, request: CommitRequest, out: GroupDecision) -> None:
        """OffsetCommit: visible when it is durable. Raises KafkaError when the group refuses.

        A commit renews the member's session as a heartbeat does (S-GRP-2).
        """
        self._check_commit(request, out)
        now_ms = self._now_ms()
        expires = _expiry_of(request, now_ms)
        group_id = request.group_id
        records = [
            OffsetRecord((group_id, one.topic, one.partition), _committed(one, now_ms, expires))
            for one in request.partitions
        ]
        if records:
            out.write(records).translate = commit_code

    def commit_in_transaction(self, request: TransactionalCommit, out: GroupDecision) -> None:
        """TxnOffsetCommit: pending when it is durable. Raises KafkaError when the group refuses."""
        commit, producer_id = request.commit, request.producer_id
        self._check_commit_in_transaction(commit)
        now_ms = self._now_ms()
        expires = _expiry_of(commit, now_ms)
        group_id = commit.group_id
        records = [
            PendingOffsetRecord(
                (group_id, one.topic, one.partition),
                _committed(one, now_ms, expires),
                producer_id,
            )
            for one in commit.partitions
        ]
        if records:
            out.write(records).producer = {
                "producer_id": producer_id,
                "producer_epoch": request.producer_epoch,
                "transactional": True,
            }

    def _check_commit(self, request: CommitRequest, out: GroupDecision) -> None:
        group = self._groups.get(request.group_id)
        if group is None:
            # A simple consumer: replay of its first offset creates the group.
            if request.generation >= 0:
                raise KafkaError(request.unknown_group)
            return
        if self._in_flight and self._groups.is_being_deleted(request.group_id):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_commit(request, out)

    def _check_commit_in_transaction(self, request: CommitRequest) -> None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            return
        if self._groups.is_being_deleted(request.group_id):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_commit_in_transaction(request)

    # ---- deletion and expiry

    def delete_offsets(
        self, group_id: str, wanted: Iterable[tuple[str, int]], out: GroupDecision
    ) -> dict[tuple[str, int], ErrorCode]:
        """OffsetDelete: return a code per partition. Raises KafkaError (S-GRP-6)."""
        group = self._groups.living(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_offset_delete()
        results: dict[tuple[str, int], ErrorCode] = {}
        tombstones = []
        for topic, partition in wanted:
            if group.is_subscribed_to(topic):
                results[topic, partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            results[topic, partition] = ErrorCode.NONE
            key = (group_id, topic, partition)
            if self._store.get(key) is not None or self.is_pending(key):
                tombstones.append(OffsetRecord(key, None))
        if tombstones:
            out.write(tombstones)
        return results

    def forget_topics(self, topics: Collection[str]) -> list[OffsetRecord]:
        """Return tombstones for all offsets of deleted topics, those pending or in flight, too."""
        keys = dict.fromkeys(
            (group_id, topic, partition)
            for group_id in self._store.group_ids()
            for topic, partitions in self._store.of_group(group_id).items()
            if topic in topics
            for partition in partitions
        )
        keys.update((key, None) for key in self._store.all_pending_keys() if key[1] in topics)
        keys.update((key, None) for key in self._all_keys_in_flight() if key[1] in topics)
        return [OffsetRecord(key, None) for key in keys]

    def tombstones(self, group_id: str) -> list[OffsetRecord]:
        """Return tombstones for all offsets of a group, including those pending or in flight."""
        keys = dict.fromkeys(
            (group_id, topic, partition)
            for topic, partitions in self._store.of_group(group_id).items()
            for partition in partitions
        )
        keys.update(dict.fromkeys(self._store.pending_keys(group_id)))
        keys.update(dict.fromkeys(self._keys_in_flight(group_id)))
        return [OffsetRecord(key, None) for key in keys]

    def expired(self, group: Group, now_ms: int) -> tuple[list[OffsetRecord], bool]:
        """Return tombstones for expired offsets, and whether the group has no offset left."""
        check = ExpiryCheck(group, now_ms, self._retention_ms)
        tombstones: list[OffsetRecord] = []
        all_gone = True
        for topic, partitions in self._store.of_group(group.group_id).items():
            if group.is_subscribed_to(topic):
                all_gone = False
                continue
            for partition, committed in partitions.items():
                key = (group.group_id, topic, partition)
                if (
                    check.is_expired(committed)
                    and key not in self._in_flight
                    and not self._store.is_pending(key)
                ):
                    tombstones.append(OffsetRecord(key, None))
                else:
                    all_gone = False
        return tombstones, all_gone

    def may_vanish(self, group: Group) -> bool:
        """Whether a group that has no offset left may be deleted too."""
        return (
            group.is_vacant
            and not self._store.has_open_transaction(group.group_id)
            and not self._keys_in_flight(group.group_id)
        )

    # ---- pending or in flight

    def is_pending(self, key: OffsetKey) -> bool:
        """Whether an open transaction holds an offset of this partition, durable or in flight."""
        return self._store.is_pending(key) or any(
            isinstance(record, PendingOffsetRecord) for record in self._in_flight.of(key)
        )

    def _keys_in_flight(self, group_id: str) -> list[OffsetKey]:
        return [key for key in self._all_keys_in_flight() if key[0] == group_id]

    def _all_keys_in_flight(self) -> Iterator[OffsetKey]:
        for records in self._in_flight.values():
            for record in records:
                if not isinstance(record, GroupMetadataRecord):
                    yield record.key

    # ---- replay

    def replay(self, record: OffsetRecord | PendingOffsetRecord, offset: int) -> None:
        """Apply one durable record at `offset`."""
        committed = record.committed
        if committed is None:
            self._store.remove(record.key)
            return
        committed.record_offset = offset
        self._groups.ensure(record.key[0])
        if isinstance(record, OffsetRecord):
            self._store.put(record.key, committed)
        elif record.ended is None:
            self._store.put_pending(record.producer_id, record.key, committed)
        elif record.ended:
            self._store.put_if_later(record.key, committed)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended: show or drop its pending offsets.

        Records in flight precede the marker in the log, so they are shown or dropped as soon as
        they are durable.
        """
        self._store.end_transaction(producer_id, commit)
        for records in self._in_flight.values():
            for record in records:
                if (
                    isinstance(record, PendingOffsetRecord)
                    and record.producer_id == producer_id
                    and record.ended is None
                ):
                    record.ended = commit


def _expiry_of(request: CommitRequest, now_ms: int) -> int | None:
    # Kafka's sum overflows: an offset with a huge retention expires in the next round. This clamps.
    if request.retention_ms is None:
        return None
    return min(now_ms + request.retention_ms, _LAST_TIMESTAMP)


def _committed(one: PartitionCommit, now_ms: int, expires: int | None) -> CommittedOffset:
    return CommittedOffset(
        offset=one.offset,
        leader_epoch=one.leader_epoch,
        metadata=one.metadata,
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=expires,
        topic_id=one.topic_id,
    )
