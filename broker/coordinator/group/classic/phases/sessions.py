"""Staying alive: every sign of life sets a member's session timer anew (S-GRP-2).

A parked request is a sign of life too (`Member.satisfies_heartbeat`); what happens when a timer
fires is `departures`' to say.
"""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.outcome import Outcome, session_timer
from protocol.errors import ErrorCode, KafkaError

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the first join of a new member stays parked: if its client died meanwhile nobody
would ever notice, for a parked connection is not read (Kafka: 5 minutes)."""


def watch(group: ClassicGroup, member_id: str, timeout_ms: int, out: Outcome) -> None:
    """The member's (or pending id's) session ends in `timeout_ms` unless it is renewed."""
    out.schedule(session_timer(group.group_id, member_id, timeout_ms))


def heartbeat(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, out: Outcome
) -> ErrorCode:
    """Heartbeat: renews the session; the code tells the member what to do (S-GRP-2)."""
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
