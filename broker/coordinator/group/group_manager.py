"""All groups of one partition of `__consumer_offsets` (Kafka's `GroupMetadataManager`).

Finds or makes the group a request is for, and lets the decisions of `classic` loose on it. Pure.

A group whose tombstone is in flight is being deleted: nobody may use it any more, but it is as it
was, and stays so if the tombstone cannot be written.
"""

from collections.abc import Callable, Iterator, Sequence

from broker.coordinator.group.classic import sessions
from broker.coordinator.group.classic.departures import Departures
from broker.coordinator.group.classic.group import Group
from broker.coordinator.group.classic.joining import Joining
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.member import Answer
from broker.coordinator.group.classic.parked import refused
from broker.coordinator.group.classic.rebalance import Rebalance
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.classic.stored import confirm, restored_group
from broker.coordinator.group.classic.syncing import Syncing
from broker.coordinator.group.outcome import Outcome, Timer, TimerKind
from broker.coordinator.group.stored import GroupMetadataRecord, GroupRecord, StoredGroup
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
from broker.coordinator.runtime.decision import Then
from broker.coordinator.runtime.in_flight import InFlight
from protocol.errors import ErrorCode


class GroupMetadataManager:
    """The groups of a partition by their ids, and every decision about their members."""

    def __init__(
        self,
        limits: GroupLimits,
        in_flight: InFlight[GroupRecord],
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._in_flight = in_flight
        self._now_ms = now_ms
        self._read_topics = read_topics
        self._rebalance = Rebalance(limits, now_ms=now_ms, read_topics=read_topics)
        self._joining = Joining(limits, self._rebalance, new_id=new_id)
        self._syncing = Syncing(self._rebalance)
        self._departures = Departures(self._rebalance)
        self._groups: dict[str, Group] = {}

    def get(self, group_id: str) -> Group | None:
        """The group, also while it is being deleted; None when there is none."""
        return self._groups.get(group_id)

    def is_being_deleted(self, group_id: str) -> bool:
        """Whether the group's tombstone is being written: to whoever asks it is gone."""
        return any(
            isinstance(record, GroupMetadataRecord) and record.value is None
            for record in self._in_flight.of(group_id)
        )

    def state_of(self, group: Group) -> GroupState:
        """As requests are told it."""
        if self._in_flight and self.is_being_deleted(group.group_id):
            return GroupState.DEAD
        return group.state

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
        if self._in_flight and self.is_being_deleted(request.group_id):
            out.answer(answer, refused(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
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

        def then(code: ErrorCode, following: Outcome) -> None:
            if code is not ErrorCode.NONE and self._groups.get(group.group_id) is group:
                self._rebalance.close(group, code, following)
                del self._groups[group.group_id]

        out.write([GroupMetadataRecord(group.group_id, stored)], then=then)

    def sync(self, request: SyncRequest, answer: Answer, out: Outcome) -> None:
        """SyncGroup."""
        group = self._groups.get(request.group_id)
        if group is None:
            out.answer(answer, SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID))
        elif self._in_flight and self.is_being_deleted(request.group_id):
            out.answer(answer, SyncReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
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
        if self._in_flight and self.is_being_deleted(group_id):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
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
        if self.is_being_deleted(group_id):
            return LeaveReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._departures.leave(group, leaving, out)

    def on_timer(self, timer: Timer, out: Outcome) -> None:
        """A timer fired that an outcome had set."""
        group = self._groups.get(timer.group_id)
        if group is None or self.is_being_deleted(timer.group_id):
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

    def closing(self, groups: Sequence[Group]) -> Then:
        """What follows upon the tombstones of groups: timers end with those that are gone."""

        def then(code: ErrorCode, following: Outcome) -> None:
            for group in groups:
                # Of several batches one may have failed, and its groups are as they were.
                if self._groups.get(group.group_id) is not group:
                    self._rebalance.close(group, ErrorCode.COORDINATOR_NOT_AVAILABLE, following)

        return then

    def replay(self, record: GroupMetadataRecord) -> None:
        """One durable record."""
        group_id, stored = record.group_id, record.value
        group = self._groups.get(group_id)
        if stored is None:
            self._groups.pop(group_id, None)
        elif group is not None and group_id in self._in_flight:
            confirm(group, stored, self._now_ms())
        else:
            self._groups[group_id] = restored_group(group_id, stored)

    # ---- looking

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups; GROUP_ID_NOT_FOUND and Dead when there is no such group."""
        group = self._groups.get(group_id)
        if group is None or self.is_being_deleted(group_id):
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
                state=self.state_of(group).value,
            )

    def _check(self) -> None:
        """Invariants, for tests."""
        for group_id, group in self._groups.items():
            assert group.group_id == group_id
            group._check()
