"""LeaveGroup, and members whose sessions expire (S-GRP-2, S-GRP-3)."""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.phases import parked
from broker.coordinator.group.classic.phases.rebalance import Rebalance
from broker.coordinator.group.data.values import (
    UNKNOWN_MEMBER,
    JoinReply,
    LeaveReply,
    LeaveResult,
    LeavingMember,
    SyncReply,
)
from broker.coordinator.group.decision import GroupDecision, RebalanceReason, session_key
from protocol.errors import ErrorCode, KafkaError


class Departures:
    """Removes members: those that leave, and those whose sessions have run out."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def leave(
        self, group: ClassicGroup, leaving: tuple[LeavingMember, ...], out: GroupDecision
    ) -> LeaveReply:
        """LeaveGroup of one or more members, by member id or by instance id alone (S-GRP-3)."""
        results = []
        members_before = len(group.members)
        for one in leaving:
            code = _leave_one(group, one, out)
            results.append(
                LeaveResult(member_id=one.member_id, instance_id=one.instance_id, error=code)
            )
        if any(result.error is ErrorCode.NONE for result in results):
            self._rebalance.after_removal(
                group,
                RebalanceReason.MEMBER_LEFT,
                out,
                was_member=len(group.members) < members_before,
            )
        return LeaveReply(members=tuple(results))

    def on_session_timeout(self, group: ClassicGroup, member_id: str, out: GroupDecision) -> None:
        """A session is over: forget the pending id, or remove the member unless it is parked."""
        member = group.members.get(member_id)
        if member is not None and member.satisfies_heartbeat:
            return
        if member is None and member_id not in group.pending_join:
            return
        _remove(group, member_id, out)
        self._rebalance.after_removal(
            group, RebalanceReason.SESSION_EXPIRED, out, was_member=member is not None
        )


def _leave_one(group: ClassicGroup, one: LeavingMember, out: GroupDecision) -> ErrorCode:
    member_id = one.member_id
    if member_id == UNKNOWN_MEMBER:
        found = group.static_members.get(one.instance_id) if one.instance_id else None
        if found is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = found
    elif member_id not in group.pending_join:
        try:
            group.validate_member(member_id, one.instance_id)
        except KafkaError as error:
            return error.code
    _remove(group, member_id, out)
    return ErrorCode.NONE


def _remove(group: ClassicGroup, member_id: str, out: GroupDecision) -> None:
    member = group.members.get(member_id)
    if member is not None:
        # A member that is alive after all begins anew when it gets this error.
        parked.release(
            group,
            member,
            JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID),
            SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID),
            out,
        )
    group.remove(member_id)
    out.cancel(session_key(group.group_id, member_id))
