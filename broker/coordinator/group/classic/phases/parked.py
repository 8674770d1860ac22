"""Requests of members that wait in a group: how they are parked again, released and answered.

A JoinGroup waits for the other members, a follower's SyncGroup for the leader's assignment. Each of
them is answered exactly once, whatever happens to the group or to the member.
"""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.member import Member
from broker.coordinator.group.classic.phases import sessions
from broker.coordinator.group.data.values import JoinReply, JoinRequest, SyncReply
from broker.coordinator.group.decision import GroupDecision
from protocol.errors import ErrorCode


def refused(request: JoinRequest, code: ErrorCode) -> JoinReply:
    """The reply to a JoinGroup that is refused with `code`."""
    return JoinReply(error=code, member_id=request.member_id)


def generation_reply(
    group: ClassicGroup, member: Member, *, as_follower: bool = False
) -> JoinReply:
    """The JoinGroup reply that begins a generation; the leader's lists the members too."""
    leads = group.is_leader(member.member_id) and not as_follower
    return JoinReply(
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=group.joined_members() if leads else (),
    )


def sync_reply(group: ClassicGroup, assignment: bytes) -> SyncReply:
    """The SyncGroup reply with a member's assignment."""
    return SyncReply(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


def park_join(
    group: ClassicGroup, member: Member, request: JoinRequest, out: GroupDecision
) -> None:
    """Take over a rejoining member's protocols and timeouts, and park its JoinGroup.

    An earlier parked join of the same member is answered REBALANCE_IN_PROGRESS.
    """
    group.update(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
    )
    replaced = group.set_awaiting_join(member, request.replied)
    out.answer(
        replaced,
        JoinReply(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id),
    )


def release(
    group: ClassicGroup, member: Member, join: JoinReply, sync: SyncReply, out: GroupDecision
) -> None:
    """Answer the member's parked requests: its JoinGroup with `join`, its SyncGroup with `sync`."""
    out.answer(group.set_awaiting_join(member, None), join)
    out.answer(member.awaiting_sync, sync)
    member.awaiting_sync = None


def give_assignments(group: ClassicGroup, out: GroupDecision) -> bool:
    """Answer parked SyncGroups with the durable assignments; return whether there were any."""
    waited = False
    for member in group.members.values():
        if member.awaiting_sync is not None:
            _answer_sync(group, member, sync_reply(group, member.assignment), out)
            waited = True
    return waited


def refuse_assignments(group: ClassicGroup, code: ErrorCode, out: GroupDecision) -> None:
    """Clear the assignments of this generation and answer parked SyncGroups with `code`."""
    for member in group.members.values():
        member.assignment = b""
        if member.awaiting_sync is not None:
            _answer_sync(group, member, SyncReply(error=code), out)


def _answer_sync(group: ClassicGroup, member: Member, reply: SyncReply, out: GroupDecision) -> None:
    out.answer(member.awaiting_sync, reply)
    member.awaiting_sync = None
    # Its session timer may have fired without effect while the request was parked: set it again.
    sessions.watch(group, member.member_id, member.session_timeout_ms, out)
