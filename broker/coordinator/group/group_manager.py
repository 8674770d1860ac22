"""All groups of one partition of `__consumer_offsets` (Kafka's `GroupMetadataManager`).

Finds or makes the group a request is for, and lets the decisions of `classic` loose on it. Pure.

Group metadata of a living group is not replayed after it was written: the group in memory is what
the record was made from, and it holds parked requests. Tombstones are.
"""

from collections.abc import Callable, Iterator

from broker.coordinator.group.classic import sessions
from broker.coordinator.group.classic.departures import Departures
from broker.coordinator.group.classic.group import Group
from broker.coordinator.group.classic.joining import Joining
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.member import Answer
from broker.coordinator.group.classic.rebalance import Rebalance
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.classic.stored import restored_group
from broker.coordinator.group.classic.syncing import Syncing
from broker.coordinator.group.outcome import Outcome, Timer, TimerKind
from broker.coordinator.group.stored import GroupMetadataRecord, StoredGroup
from broker.coordinator.group.values import (
    UNKNOWN_MEMBER,
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
from protocol.errors import ErrorCode


class GroupMetadataManager:
    """The groups of a partition by their ids, and every decision about their members."""

    def __init__(
        self,
        limits: GroupLimits,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._now_ms = now_ms
        self._read_topics = read_topics
        self._rebalance = Rebalance(limits, now_ms=now_ms, read_topics=read_topics)
        self._joining = Joining(limits, self._rebalance, new_id=new_id)
        self._syncing = Syncing(self._rebalance, now_ms=now_ms)
        self._departures = Departures(self._rebalance)
        self._groups: dict[str, Group] = {}

    def get(self, group_id: str) -> Group | None:
        """The group, dead ones included; None when there is none."""
        return self._groups.get(group_id)

    def __len__(self) -> int:
        return len(self._groups)

    def ids(self) -> list[str]:
        """The names of all groups."""
        return list(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def ensure(self, group_id: str) -> None:
        """Offsets without group metadata belong to a simple group."""
        if group_id not in self._groups:
            self._groups[group_id] = Group(group_id, state_timestamp_ms=self._now_ms())

    # ---- membership

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
        self._joining.join(group, request, answer, out)

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
            self._syncing.sync(group, request, answer, out)

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
        return sessions.heartbeat(group, member_id, instance_id, generation, out)

    def renew_session(self, group: Group, member_id: str, out: Outcome) -> None:
        """A sign of life other than a heartbeat."""
        sessions.renew(group, member_id, out)

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
        return self._departures.leave(group, leaving, out)

    def on_timer(self, timer: Timer, out: Outcome) -> None:
        """A timer fired that an outcome had set."""
        group = self._groups.get(timer.group_id)
        if group is None or group.state is GroupState.DEAD:
            return
        if timer.kind is TimerKind.SESSION:
            self._departures.on_session_timeout(group, timer.member_id, out)
        elif timer.kind is TimerKind.INITIAL_JOIN:
            self._rebalance.on_initial_delay(group, timer, out)
        elif timer.kind is TimerKind.JOIN:
            self._rebalance.complete_join(group, out)
        else:
            self._rebalance.on_sync_timeout(group, timer, out)

    # ---- life

    def on_loaded(self, out: Outcome) -> None:
        """The log has been replayed: sessions begin."""
        for group in self._groups.values():
            group.compute_subscribed_topics(self._read_topics)
            self._rebalance.on_loaded(group, out)

    def close(self, code: ErrorCode, out: Outcome) -> None:
        """This broker leads the partition no more: answer everybody, forget everything."""
        for group in self._groups.values():
            self._rebalance.close(group, code, out)
        self._groups.clear()

    def mark_dead(self, group: Group, out: Outcome) -> None:
        """The group is being deleted: nobody joins it while its tombstones are written."""
        self._rebalance.close(group, ErrorCode.COORDINATOR_NOT_AVAILABLE, out)

    def undo_delete(self, group_id: str) -> None:
        """The tombstones could not be written: the group is Empty as it was."""
        group = self._groups.get(group_id)
        if group is not None and group.state is GroupState.DEAD:
            group.state = group.previous_state
            group.pending_join.clear()

    def replay(self, record: GroupMetadataRecord) -> None:
        """One durable record."""
        if record.value is None:
            self._groups.pop(record.group_id, None)
        else:
            self._groups[record.group_id] = restored_group(record.group_id, record.value)

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

    def list_groups(self) -> Iterator[ListedGroup]:
        """ListGroups; others may change groups while it is gone through."""
        for group in self:
            yield ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                state=group.state.value,
            )

    def _check(self) -> None:
        """Invariants, for tests."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            group._check()
