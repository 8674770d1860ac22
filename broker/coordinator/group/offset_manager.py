"""Commits: what a group may commit, forget and outlive (Kafka's `OffsetMetadataManager`).

Each method says which records are to be written, and `replay` takes them when they are durable;
until then nothing is visible (S-GRP-4). Pure.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from broker.coordinator.group.classic.group import Group
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.expiry import ExpiryCheck
from broker.coordinator.group.group_manager import GroupMetadataManager
from broker.coordinator.group.offsets import CommittedOffset, OffsetKey, OffsetStore
from broker.coordinator.group.outcome import Outcome
from broker.coordinator.group.stored import OffsetRecord
from broker.coordinator.group.values import CommitRequest
from protocol.errors import ErrorCode, KafkaError

_LAST_TIMESTAMP: Final = 2**63 - 1


class OffsetMetadataManager:
    """The committed offsets of a partition's groups, and every decision about them."""

    def __init__(
        self,
        groups: GroupMetadataManager,
        store: OffsetStore,
        *,
        now_ms: Callable[[], int],
        retention_ms: int,
    ) -> None:
        self._groups = groups
        self._store = store
        self._now_ms = now_ms
        self._retention_ms = retention_ms

    # ---- commits

    def commit(self, request: CommitRequest, out: Outcome) -> list[OffsetRecord]:
        """OffsetCommit: the records to write. Raises KafkaError when the group refuses.

        A commit keeps the member's session as a heartbeat does (S-GRP-2).
        """
        self._validate_commit(request, out)
        return self._offset_records(request)

    def commit_in_transaction(self, request: CommitRequest) -> list[OffsetRecord]:
        """TxnOffsetCommit: the records to write. Raises KafkaError when the group refuses.

        KIP-447: a generation, member or static name that is given must be current (S-TXN-5);
        older clients give none, and a group with members takes their commits all the same. Nothing
        here is a sign of life, and a rebalance does not stop it.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            return self._offset_records(request)
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        named = bool(request.member_id) or request.instance_id is not None
        if request.generation >= 0 or (named and group.state is not GroupState.EMPTY):
            group.validate_member(request.member_id, request.instance_id)
            if request.generation != group.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return self._offset_records(request)

    def _offset_records(self, request: CommitRequest) -> list[OffsetRecord]:
        now_ms = self._now_ms()
        # Kafka's sum wraps, and what was to stay for ever is gone with the next round.
        expires = (
            None
            if request.retention_ms is None
            else min(now_ms + request.retention_ms, _LAST_TIMESTAMP)
        )
        group_id = request.group_id
        return [
            OffsetRecord(
                (group_id, one.topic, one.partition),
                CommittedOffset(
                    offset=one.offset,
                    leader_epoch=one.leader_epoch,
                    metadata=one.metadata,
                    commit_timestamp_ms=now_ms,
                    expire_timestamp_ms=expires,
                    topic_id=one.topic_id,
                ),
            )
            for one in request.partitions
        ]

    def _validate_commit(self, request: CommitRequest, out: Outcome) -> None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                raise KafkaError(request.unknown_group)
            return  # A simple consumer: the group comes with its first offset.
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if request.generation < 0 and group.state is GroupState.EMPTY:
            return
        if request.generation < 0 and not request.member_id and request.instance_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.validate_member(request.member_id, request.instance_id)
        if request.generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # It knows the new generation but not its assignment: it may not own the partition.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._groups.renew_session(group, request.member_id, out)

    # ---- deletion and expiry

    def delete_offsets(
        self, group_id: str, wanted: Iterable[tuple[str, int]]
    ) -> tuple[dict[tuple[str, int], ErrorCode], list[OffsetRecord]]:
        """OffsetDelete: a result per partition, and the tombstones. Raises KafkaError (S-GRP-6)."""
        group = self._groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        results: dict[tuple[str, int], ErrorCode] = {}
        tombstones = []
        for topic, partition in wanted:
            if group.is_subscribed_to(topic):
                results[topic, partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            results[topic, partition] = ErrorCode.NONE
            key = (group_id, topic, partition)
            if self._store.get(key) is not None or self._store.is_pending(key):
                tombstones.append(OffsetRecord(key, None))
        return results, tombstones

    def forget_topics(self, topics: Collection[str]) -> list[OffsetRecord]:
        """Tombstones for all offsets of topics that were deleted."""
        return [
            OffsetRecord((group_id, topic, partition), None)
            for group_id in self._store.group_ids()
            for topic, partitions in self._store.of_group(group_id).items()
            if topic in topics
            for partition in partitions
        ]

    def tombstones(self, group_id: str) -> list[OffsetRecord]:
        """For all offsets of a group, also those that are on their way or pending."""
        keys = dict.fromkeys(
            (group_id, topic, partition)
            for topic, partitions in self._store.of_group(group_id).items()
            for partition in partitions
        )
        keys.update(dict.fromkeys(self._store.pending_keys(group_id)))
        keys.update(dict.fromkeys(self._store.in_flight_keys(group_id)))
        return [OffsetRecord(key, None) for key in keys]

    def expired(self, group: Group, now_ms: int) -> tuple[list[OffsetRecord], bool]:
        """Tombstones for what has outlived its retention, and whether no offset is left."""
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
                    and not self._store.is_in_flight(key)
                    and not self._store.is_pending(key)
                ):
                    tombstones.append(OffsetRecord(key, None))
                else:
                    all_gone = False
        return tombstones, all_gone

    def may_vanish(self, group: Group) -> bool:
        """Whether an empty group without offsets left may go too."""
        return (
            group.state is GroupState.EMPTY
            and not group.pending_join
            and not self._store.has_open_transaction(group.group_id)
            and not self._store.in_flight_keys(group.group_id)
        )

    # ---- replay

    def replay(self, record: OffsetRecord, offset: int) -> None:
        """One durable record that lies at `offset`."""
        if record.committed is None:
            self._store.remove(record.key)
            return
        self._groups.ensure(record.key[0])
        record.committed.record_offset = offset
        self._store.put(record.key, record.committed)

    def put_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """An offset of an open transaction; its group must not vanish meanwhile."""
        self._groups.ensure(key[0])
        self._store.put_pending(producer_id, key, committed)
