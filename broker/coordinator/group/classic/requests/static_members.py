"""A static member that comes back under a new member id (S-GRP-3, KIP-345, KIP-814)."""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.member import Member
from broker.coordinator.group.classic.phases import parked, sessions
from broker.coordinator.group.classic.phases.rebalance import Rebalance
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.classic.stored import stored_group
from broker.coordinator.group.data.values import JoinReply, JoinRequest, SyncReply
from broker.coordinator.group.decision import GroupDecision, RebalanceReason, session_key
from protocol.errors import ErrorCode


class StaticMembers:
    """Replaces the member id of a static member by a new one."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def replace(
        self, group: ClassicGroup, request: JoinRequest, new_id: str, out: GroupDecision
    ) -> None:
        """Give the instance's place to `new_id`; the old id is fenced."""
        instance_id = request.instance_id
        assert instance_id is not None
        old_id = group.static_members[instance_id]
        old_leader = group.leader_id
        member = group.members[old_id]
        parked.release(
            group,
            member,
            JoinReply(error=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id),
            SyncReply(error=ErrorCode.FENCED_INSTANCE_ID),
            out,
        )
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.replace_static(instance_id, new_id)
        member.is_new = False
        out.cancel(session_key(group.group_id, old_id))
        parked.park_join(group, member, request, out)
        sessions.watch(group, new_id, member.session_timeout_ms, out)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may be computing an assignment for the old id.
            self._rebalance.prepare(group, RebalanceReason.STATIC_MEMBER_REPLACED, out)
        elif group.state is not GroupState.STABLE:
            self._rebalance.maybe_complete_join(group, out)
        elif group.select_protocol() != group.protocol_name:
            self._rebalance.prepare_or_complete(group, RebalanceReason.PROTOCOL_CHANGED, out)
        else:
            self._store_replacement(group, request, member, (old_id, old_leader, before), out)

    def _store_replacement(
        self,
        group: ClassicGroup,
        request: JoinRequest,
        member: Member,
        old: tuple[str, str | None, tuple[tuple[tuple[str, bytes], ...], int, int]],
        out: GroupDecision,
    ) -> None:
        """Write the new id of a stable group and answer then, without a rebalance.

        If the write fails the old id gets its place back.
        """
        old_id, old_leader, (protocols, rebalance_timeout_ms, session_timeout_ms) = old
        new_id, generation = member.member_id, group.generation
        assignments = {m.member_id: m.assignment for m in group.members.values()}

        def then(code: ErrorCode, following: GroupDecision) -> None:
            if group.state is not GroupState.STABLE or group.generation != generation:
                return  # A rebalance has begun and will answer the parked join.
            if member.awaiting_join is not request.replied:
                return  # The instance has returned once more, and this join was answered then.
            answer = group.set_awaiting_join(member, None)
            if code is ErrorCode.NONE:
                skips = request.supports_skip_assignment and group.leader_id == new_id
                reply = JoinReply(
                    member_id=new_id,
                    generation=generation,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    # Below v9 the response names the old id as leader, so the returning member acts
                    # as a follower: it did not get the members and could not assign.
                    leader=(group.leader_id if request.supports_skip_assignment else old_leader)
                    or "",
                    skip_assignment=skips,
                    members=group.joined_members() if skips else (),
                )
                following.answer(answer, reply)
                return
            if member.instance_id is not None and new_id in group.members:
                group.update(
                    member,
                    protocols=protocols,
                    rebalance_timeout_ms=rebalance_timeout_ms,
                    session_timeout_ms=session_timeout_ms,
                )
                group.replace_static(member.instance_id, old_id)
                following.cancel(session_key(group.group_id, new_id))
                sessions.watch(group, old_id, session_timeout_ms, following)
            following.answer(answer, JoinReply(error=code))

        out.write([stored_group(group, assignments)], then=then)
