"""JoinGroup: who may become a member, and what a member that joins again gets."""

from collections.abc import Callable

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.member import Member
from broker.coordinator.group.classic.phases import parked, sessions
from broker.coordinator.group.classic.phases.rebalance import Rebalance
from broker.coordinator.group.classic.requests.static_members import StaticMembers
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.values import UNKNOWN_MEMBER, JoinReply, JoinRequest
from broker.coordinator.group.decision import GroupDecision, RebalanceReason, session_key
from protocol.errors import ErrorCode, KafkaError


class Joining:
    """Decides a JoinGroup: admit the member, hand out a member id, or start a rebalance."""

    def __init__(
        self, limits: GroupLimits, rebalance: Rebalance, *, new_id: Callable[[], str]
    ) -> None:
        self._limits = limits
        self._rebalance = rebalance
        self._static_members = StaticMembers(rebalance)
        self._new_id = new_id

    def join(self, group: ClassicGroup, request: JoinRequest, out: GroupDecision) -> None:
        """JoinGroup; the reply is given now, or parked in the group."""
        member_id = request.member_id
        if not self._has_room(group, member_id):
            self._turn_away(group, member_id, out)
            out.answer(request.replied, JoinReply(error=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, request.protocols):
            out.answer(
                request.replied, parked.refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            )
        elif member_id == UNKNOWN_MEMBER:
            self._join_without_id(group, request, out)
        elif member_id in group.pending_join and request.instance_id is None:
            self._add(group, request, member_id, out)
        else:
            self._rejoin(group, request, out)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether group.max.size admits this member.

        In PreparingRebalance parked joins are counted instead of members: if the limit was lowered
        below the group's size, the first to rejoin are admitted and the last are refused.
        """
        member = group.members.get(member_id)
        limit = self._limits.max_size
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            if member is not None and member.awaiting_join is not None:
                return True
            return group.awaiting_join_count < limit
        return member is not None or len(group.members) < limit

    def _turn_away(self, group: ClassicGroup, member_id: str, out: GroupDecision) -> None:
        if member_id == UNKNOWN_MEMBER:
            return
        group.remove(member_id)
        out.cancel(session_key(group.group_id, member_id))
        self._rebalance.maybe_complete_join(group, out)

    def _join_without_id(
        self, group: ClassicGroup, request: JoinRequest, out: GroupDecision
    ) -> None:
        instance_id = request.instance_id
        if instance_id is not None:
            new_id = f"{instance_id}-{self._new_id()}"
            if instance_id in group.static_members:
                self._static_members.replace(group, request, new_id, out)
            else:
                self._add(group, request, new_id, out)
            return
        new_id = f"{request.client_id}-{self._new_id()}"
        if not request.require_known_member_id:
            self._add(group, request, new_id, out)
            return
        group.pending_join.add(new_id)
        sessions.watch(group, new_id, request.session_timeout_ms, out)
        out.answer(request.replied, JoinReply(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))

    def _add(
        self, group: ClassicGroup, request: JoinRequest, member_id: str, out: GroupDecision
    ) -> None:
        member = Member(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
        )
        member.is_new = True
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is GroupState.EMPTY
        ):
            group.new_member_added = True
        group.add(member, request.replied)
        sessions.watch(group, member_id, sessions.NEW_MEMBER_JOIN_TIMEOUT_MS, out)
        self._rebalance.prepare_or_complete(group, RebalanceReason.MEMBER_JOINED, out)

    def _rejoin(self, group: ClassicGroup, request: JoinRequest, out: GroupDecision) -> None:
        try:
            member = group.validate_member(request.member_id, request.instance_id)
        except KafkaError as error:
            out.answer(request.replied, parked.refused(request, error.code))
            return
        unchanged = member.protocols == request.protocols
        if group.state is GroupState.PREPARING_REBALANCE:
            parked.park_join(group, member, request, out)
            self._rebalance.maybe_complete_join(group, out)
        elif group.state is GroupState.COMPLETING_REBALANCE and unchanged:
            # Its JoinGroup response was probably lost: send it again.
            out.answer(request.replied, parked.generation_reply(group, member))
        elif group.state is GroupState.STABLE and unchanged and group.leader_id != member.member_id:
            out.answer(request.replied, parked.generation_reply(group, member, as_follower=True))
        elif group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            # A join of the leader always rebalances: the leader may have seen new partitions.
            parked.park_join(group, member, request, out)
            reason = (
                RebalanceReason.LEADER_REJOINED if unchanged else RebalanceReason.MEMBER_CHANGED
            )
            self._rebalance.prepare_or_complete(group, reason, out)
        else:
            out.answer(request.replied, parked.refused(request, ErrorCode.UNKNOWN_MEMBER_ID))
