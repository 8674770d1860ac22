"""The classic groups of a shard: finds or creates the group of a request and has it decided.

Timers, and the loading and closing of the partition, enter here too. Pure. After the part of
Kafka's `GroupMetadataManager` that concerns classic groups.
"""

from collections.abc import Callable, Iterator

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.phases import sessions
from broker.coordinator.group.classic.phases.parked import refused
from broker.coordinator.group.classic.phases.rebalance import Rebalance
from broker.coordinator.group.classic.requests.departures import Departures
from broker.coordinator.group.classic.requests.joining import Joining
from broker.coordinator.group.classic.requests.syncing import Syncing
from broker.coordinator.group.classic.stored import confirm, restored_group
from broker.coordinator.group.data.records import GroupMetadataRecord, GroupRecord, StoredGroup
from broker.coordinator.group.data.values import (
    UNKNOWN_MEMBER,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
)
from broker.coordinator.group.decision import GroupDecision, GroupTimer, TimerKind
from broker.coordinator.group.statistics import GroupCounters
from broker.coordinator.group.table.group_table import GroupTable
from broker.coordinator.runtime.in_flight import InFlight
from protocol.errors import ErrorCode


class ClassicGroups:
    """Every decision about members of classic groups.

    A group of another kind has no classic members, so their requests get UNKNOWN_MEMBER_ID.
    """

    def __init__(
        self,
        table: GroupTable,
        limits: GroupLimits,
        counters: GroupCounters,
        in_flight: InFlight[GroupRecord],
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._table = table
        self._in_flight = in_flight
        self._now_ms = now_ms
        self._read_topics = read_topics
        self._rebalance = Rebalance(limits, counters, now_ms=now_ms, read_topics=read_topics)
        self._joining = Joining(limits, self._rebalance, new_id=new_id)
        self._syncing = Syncing(self._rebalance, counters)
        self._departures = Departures(self._rebalance)

    # ---- membership

    def join(self, request: JoinRequest, out: GroupDecision) -> None:
        """JoinGroup; creates a missing group if the joining member has no id yet."""
        group = self._table.get(request.group_id)
        if self._table.is_being_deleted(request.group_id):
            out.answer(request.replied, refused(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        if group is None:
            if request.member_id != UNKNOWN_MEMBER:
                reply = JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
                out.answer(request.replied, reply)
                return
            group = ClassicGroup(request.group_id, state_timestamp_ms=self._now_ms())
            if not group.supports(request.protocol_type, request.protocols):
                out.answer(request.replied, JoinReply(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
                return
            self._table.put(group)
            self._write_new_group(group, out)
        if isinstance(group, ClassicGroup):
            self._joining.join(group, request, out)
        else:
            out.answer(request.replied, refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def _write_new_group(self, group: ClassicGroup, out: GroupDecision) -> None:
        """Write the record of a new group: as in Kafka 4, its first join outlives a restart.

        Members may join while it is written; if the write fails they are answered with its code and
        the group is removed.
        """
        stored = StoredGroup(
            protocol_type=None,
            generation=0,
            protocol_name=None,
            leader_id=None,
            state_timestamp_ms=group.state_timestamp_ms,
        )

        def then(code: ErrorCode, following: GroupDecision) -> None:
            if code is not ErrorCode.NONE and self._table.get(group.group_id) is group:
                self._rebalance.close(group, code, following)
                self._table.remove(group.group_id)

        out.write([GroupMetadataRecord(group.group_id, stored)], then=then)

    def sync(self, request: SyncRequest, out: GroupDecision) -> None:
        """SyncGroup."""
        group = self._table.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            out.answer(request.replied, SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID))
        elif self._table.is_being_deleted(request.group_id):
            out.answer(request.replied, SyncReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._syncing.sync(group, request, out)

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        out: GroupDecision,
    ) -> ErrorCode:
        """Heartbeat."""
        group = self._table.get(group_id)
        if not isinstance(group, ClassicGroup):
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self._in_flight and self._table.is_being_deleted(group_id):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return sessions.heartbeat(group, member_id, instance_id, generation, out)

    def leave(
        self, group_id: str, leaving: tuple[LeavingMember, ...], out: GroupDecision
    ) -> LeaveReply:
        """LeaveGroup."""
        group = self._table.get(group_id)
        if not isinstance(group, ClassicGroup):
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
        if self._table.is_being_deleted(group_id):
            return LeaveReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._departures.leave(group, leaving, out)

    def on_timer(self, timer: GroupTimer, out: GroupDecision) -> None:
        """A timer fired that a decision had set; ignored if its group is gone."""
        group = self._table.living(timer.group_id)
        if not isinstance(group, ClassicGroup):
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

    def __iter__(self) -> Iterator[ClassicGroup]:
        return (group for group in self._table if isinstance(group, ClassicGroup))

    def on_loaded(self, out: GroupDecision) -> None:
        """The log has been replayed: start the members' sessions."""
        for group in self:
            group.compute_subscribed_topics(self._read_topics)
            self._rebalance.on_loaded(group, out)

    def close(self, code: ErrorCode, out: GroupDecision) -> None:
        """This broker no longer leads the partition: answer all parked requests with `code`."""
        for group in self:
            self._rebalance.close(group, code, out)

    def replay(self, record: GroupMetadataRecord) -> None:
        """Apply one durable record."""
        group_id, stored = record.group_id, record.value
        if stored is None:
            self._table.remove(group_id)
            return
        if group_id not in self._in_flight:
            self._table.put(restored_group(group_id, stored))
            return
        # This broker wrote the record. If the group is gone (its first record failed), do not
        # restore it: its members have no session timers, so they would never expire.
        group = self._table.get(group_id)
        if isinstance(group, ClassicGroup):
            confirm(group, stored, self._now_ms())
