"""Sessions: every sign of life of a member sets its session timer again (S-GRP-2).

A parked request is a sign of life too (`Member.satisfies_heartbeat`). `departures` decides what
happens when a timer fires.
"""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.decision import GroupDecision, session_timer
from protocol.errors import ErrorCode, KafkaError

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the first join of a new member may stay parked, as in Kafka. The member sends no
heartbeats before its first generation, so a dead client would otherwise stay a member for ever."""


def watch(group: ClassicGroup, member_id: str, timeout_ms: int, out: GroupDecision) -> None:
    """Set the session timer of a member or pending id: it fires in `timeout_ms` if not renewed."""
    out.schedule(session_timer(group.group_id, member_id, timeout_ms))


def heartbeat(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    out: GroupDecision,
) -> ErrorCode:
    """Renew the session and return the code that tells the member what to do (S-GRP-2)."""
    try:
        member = group.validate_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    watch(group, member_id, member.session_timeout_ms, out)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
