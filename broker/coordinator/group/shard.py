"""All groups and offsets of one partition of `__consumer_offsets`.

Finds or makes the group a request is for, lets `rebalance.py` decide about membership, decides
itself about offsets, deletion and expiry, and replays records. Pure: the runtime
(`coordinator.py`) writes what an `Outcome` says and calls `replay` with what became durable; the
loader calls the same `replay` with what the log holds.

Group metadata of a living group is not replayed after it was written: the group in memory is what
the record was made from, and it holds parked requests. Offsets and tombstones are.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator

from broker.coordinator.group.offsets import (
    CommittedOffset,
    ExpiryCheck,
    OffsetKey,
    OffsetStore,
)
from broker.coordinator.group.outcome import Outcome, Timer, TimerKind
from broker.coordinator.group.rebalance import Rebalance
from broker.coordinator.group.records import decode_record
from broker.coordinator.group.state import Answer, Group, GroupState
from broker.coordinator.group.stored import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
    restored_group,
)
from broker.coordinator.group.values import (
    UNKNOWN_MEMBER,
    CommitRequest,
    DescribedGroup,
    DescribedMember,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    SyncReply,
    SyncRequest,
)
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records.batch import BatchHeader
from protocol.records.record import Record

logger = logging.getLogger(__name__)

RECORDS_PER_YIELD = 100
"""Records decoded at a stretch while loading: about a millisecond."""


class GroupShard:
    """See the module."""

    def __init__(
        self,
        rebalance: Rebalance,
        *,
        now_ms: Callable[[], int],
        retention_ms: int,
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._rebalance = rebalance
        self._now_ms = now_ms
        self._retention_ms = retention_ms
        self._read_topics = read_topics
        self._groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}
        """While loading: the last record of each key."""

    # ---- groups

    def group(self, group_id: str) -> Group | None:
        """The group, dead ones included; None when there is none."""
        return self._groups.get(group_id)

    def groups(self) -> Iterator[Group]:
        """All groups."""
        return iter(self._groups.values())

    def join(self, request: JoinRequest, answer: Answer, out: Outcome) -> None:
        """JoinGroup: makes the group when a member without id asks for one that is not there."""
        group = self._groups.get(request.group_id)
        if group is None:
            if request.member_id != UNKNOWN_MEMBER:
                reply = JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
                out.answer(answer, reply)
                return
            group = Group(request.group_id, state_timestamp_ms=self._now_ms())
            if not group.supports(request.protocol_type, request.protocols):
                out.answer(answer, JoinReply(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
                return
            self._groups[request.group_id] = group
            self._write_new_group(group, out)
        self._rebalance.join(group, request, answer, out)

    def _write_new_group(self, group: Group, out: Outcome) -> None:
        """As Kafka 4 does: a group exists from its first join, also after a restart."""
        stored = StoredGroup(
            protocol_type=None,
            generation=0,
            protocol_name=None,
            leader_id=None,
            state_timestamp_ms=group.state_timestamp_ms,
        )

        def after(code: ErrorCode, then: Outcome) -> None:
            if code is not ErrorCode.NONE and self._groups.get(group.group_id) is group:
                self._rebalance.close(group, code, then)
                del self._groups[group.group_id]

        out.write([GroupMetadataRecord(group.group_id, stored)], after)

    def sync(self, request: SyncRequest, answer: Answer, out: Outcome) -> None:
        """SyncGroup."""
        group = self._groups.get(request.group_id)
        if group is None:
            out.answer(answer, SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._rebalance.sync(group, request, answer, out)

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        out: Outcome,
    ) -> ErrorCode:
        """Heartbeat."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._rebalance.heartbeat(group, member_id, instance_id, generation, out)

    def leave(self, group_id: str, leaving: tuple[LeavingMember, ...], out: Outcome) -> LeaveReply:
        """LeaveGroup."""
        group = self._groups.get(group_id)
        if group is None:
            return LeaveReply(
                members=tuple(
                    LeaveResult(
                        member_id=one.member_id,
                        instance_id=one.instance_id,
                        error=ErrorCode.UNKNOWN_MEMBER_ID,
                    )
                    for one in leaving
                )
            )
        return self._rebalance.leave(group, leaving, out)

    def on_timer(self, timer: Timer, out: Outcome) -> None:
        """A timer fired that an outcome had set."""
        group = self._groups.get(timer.group_id)
        if group is None or group.state is GroupState.DEAD:
            return
        if timer.kind is TimerKind.SESSION:
            self._rebalance.on_session_timeout(group, timer.member_id, out)
        elif timer.kind is TimerKind.INITIAL_JOIN:
            self._rebalance.on_initial_delay(group, timer, out)
        elif timer.kind is TimerKind.JOIN:
            self._rebalance.complete_join(group, out)
        else:
            self._rebalance.on_sync_timeout(group, timer, out)

    def on_loaded(self, out: Outcome) -> None:
        """The log has been replayed: sessions begin."""
        for group_id in self.offsets.group_ids():
            self._ensure_group(group_id)
        for group in self._groups.values():
            group.compute_subscribed_topics(self._read_topics)
            self._rebalance.on_loaded(group, out)

    def close(self, code: ErrorCode, out: Outcome) -> None:
        """This broker leads the partition no more: answer everybody, forget everything."""
        for group in self._groups.values():
            self._rebalance.close(group, code, out)
        self._groups.clear()

    # ---- offsets

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
        expires = None if request.retention_ms is None else now_ms + request.retention_ms
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
        self._rebalance.renew_session(group, request.member_id, out)

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
            if self.offsets.get(key) is not None or self.offsets.is_pending(key):
                tombstones.append(OffsetRecord(key, None))
        return results, tombstones

    def forget_topics(self, topics: Collection[str]) -> list[OffsetRecord]:
        """Tombstones for all offsets of topics that were deleted."""
        return [
            OffsetRecord((group_id, topic, partition), None)
            for group_id in self.offsets.group_ids()
            for topic, partitions in self.offsets.of_group(group_id).items()
            if topic in topics
            for partition in partitions
        ]

    # ---- deletion and expiry

    def delete_group(self, group_id: str, out: Outcome) -> list[GroupRecord]:
        """DeleteGroups: tombstones for offsets and group. Raises KafkaError (S-GRP-6).

        The group is Dead at once, so that nobody joins it while the tombstones are written;
        `undo_delete` if that fails.
        """
        group = self._groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        keys = dict.fromkeys(
            (group_id, topic, partition)
            for topic, partitions in self.offsets.of_group(group_id).items()
            for partition in partitions
        )
        keys.update(dict.fromkeys(self.offsets.pending_keys(group_id)))
        keys.update(dict.fromkeys(self.offsets.in_flight_keys(group_id)))
        self._rebalance.close(group, ErrorCode.COORDINATOR_NOT_AVAILABLE, out)
        return [*(OffsetRecord(key, None) for key in keys), GroupMetadataRecord(group_id, None)]

    def undo_delete(self, group_id: str) -> None:
        """The tombstones could not be written: the group is Empty as it was."""
        group = self._groups.get(group_id)
        if group is not None and group.state is GroupState.DEAD:
            group.state = group.previous_state
            group.pending_join.clear()

    def expire(self, out: Outcome) -> list[GroupRecord]:
        """Tombstones for offsets whose retention is over, and for empty groups without any left.

        S-GRP-4; the rules are in `offsets.py`.
        """
        now_ms = self._now_ms()
        records: list[GroupRecord] = []
        for group in list(self._groups.values()):
            if group.state is GroupState.DEAD:
                continue
            expired, all_gone = self._expired_offsets(group, now_ms)
            records.extend(expired)
            if all_gone and self._may_vanish(group):
                self._rebalance.close(group, ErrorCode.COORDINATOR_NOT_AVAILABLE, out)
                records.append(GroupMetadataRecord(group.group_id, None))
        return records

    def _expired_offsets(self, group: Group, now_ms: int) -> tuple[list[OffsetRecord], bool]:
        """Tombstones, and whether no offset is left."""
        check = ExpiryCheck(group, now_ms, self._retention_ms)
        tombstones: list[OffsetRecord] = []
        all_gone = True
        for topic, partitions in self.offsets.of_group(group.group_id).items():
            if group.is_subscribed_to(topic):
                all_gone = False
                continue
            for partition, committed in partitions.items():
                key = (group.group_id, topic, partition)
                if (
                    check.is_expired(committed)
                    and not self.offsets.is_in_flight(key)
                    and not self.offsets.is_pending(key)
                ):
                    tombstones.append(OffsetRecord(key, None))
                else:
                    all_gone = False
        return tombstones, all_gone

    def _may_vanish(self, group: Group) -> bool:
        return (
            group.state is GroupState.EMPTY
            and not group.pending_join
            and not self.offsets.has_open_transaction(group.group_id)
            and not self.offsets.in_flight_keys(group.group_id)
        )

    # ---- looking

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups; GROUP_ID_NOT_FOUND and Dead when there is no such group."""
        group = self._groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            return DescribedGroup(
                group_id=group_id,
                error=ErrorCode.GROUP_ID_NOT_FOUND,
                state=GroupState.DEAD.value,
            )
        stable = group.state is GroupState.STABLE
        return DescribedGroup(
            group_id=group_id,
            state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol_name or "") if stable else "",
            members=tuple(
                DescribedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    metadata=member.metadata(group.protocol_name) if stable else b"",
                    assignment=member.assignment,
                )
                for member in group.members.values()
            ),
        )

    def list_groups(self) -> list[ListedGroup]:
        """ListGroups."""
        return [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                state=group.state.value,
            )
            for group in self._groups.values()
        ]

    # ---- replay

    def replay(self, record: GroupRecord, offset: int) -> None:
        """One durable record that lies at `offset`, from a write just done or from the log."""
        if isinstance(record, OffsetRecord):
            if record.committed is None:
                self.offsets.remove(record.key)
                return
            self._ensure_group(record.key[0])
            record.committed.record_offset = offset
            self.offsets.put(record.key, record.committed)
        elif record.value is None:
            self._groups.pop(record.group_id, None)
        else:
            self._groups[record.group_id] = restored_group(record.group_id, record.value)

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log.

        Of each key only the last value counts, and a busy group writes the same keys all day: so
        records are noted by key, and `settle` decodes what is left. Open transactions make the
        order matter; while there are any each record is replayed as it comes.
        """
        if header.is_transactional or self.offsets.has_transactions:
            for _ in self.settle():
                pass
            self._load_now(record, header.producer_id if header.is_transactional else None)
        elif record.key is None:
            self.skipped_records += 1
        else:
            self._noted[record.key] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """A transaction that committed offsets has ended."""
        self.offsets.end_transaction(producer_id, commit)

    def settle(self) -> Iterator[None]:
        """Replay the noted records; yields now and then."""
        noted, self._noted = self._noted, {}
        for turn, record in enumerate(noted.values(), 1):
            self._load_now(record, None)
            if turn % RECORDS_PER_YIELD == 0:
                yield

    def _load_now(self, record: Record, producer_id: int | None) -> None:
        """What cannot be read is logged and left out, not fatal: a group without one offset is
        better than a partition without its groups."""
        try:
            decoded = decode_record(record.key or b"", record.value)
        except ProtocolError as error:
            self.skipped_records += 1
            logger.warning("Skipped the record at offset %d: %s", record.offset, error)
            return
        if decoded is None:
            return
        if producer_id is None:
            self.replay(decoded, record.offset)
        elif isinstance(decoded, OffsetRecord) and decoded.committed is not None:
            decoded.committed.record_offset = record.offset
            self.put_pending(producer_id, decoded.key, decoded.committed)

    def put_pending(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        """An offset of an open transaction; its group must not vanish meanwhile."""
        self._ensure_group(key[0])
        self.offsets.put_pending(producer_id, key, committed)

    def _ensure_group(self, group_id: str) -> None:
        """Offsets without group metadata belong to a simple group."""
        if group_id not in self._groups:
            self._groups[group_id] = Group(group_id, state_timestamp_ms=self._now_ms())

    def _check(self) -> None:
        """Invariants, for tests."""
        self.offsets._check()
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            group._check()
