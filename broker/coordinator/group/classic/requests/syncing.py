"""SyncGroup: the leader's assignment is stored, then every member gets its part of it."""

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.phases import parked
from broker.coordinator.group.classic.phases.rebalance import Rebalance
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.classic.stored import stored_group
from broker.coordinator.group.data.values import SyncReply, SyncRequest
from broker.coordinator.group.decision import GroupDecision, RebalanceReason, sync_key
from broker.coordinator.group.statistics import GroupCounters
from protocol.errors import ErrorCode, KafkaError


class Syncing:
    """Stores the leader's assignment and answers each member's SyncGroup with its part."""

    def __init__(self, rebalance: Rebalance, counters: GroupCounters) -> None:
        self._rebalance = rebalance
        self._counters = counters

    def sync(self, group: ClassicGroup, request: SyncRequest, out: GroupDecision) -> None:
        """SyncGroup; followers are parked until the leader's assignment is written."""
        code = _refusal(group, request)
        if code is not ErrorCode.NONE:
            out.answer(request.replied, SyncReply(error=code))
            return
        member = group.members[request.member_id]
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            out.cancel(sync_key(group.group_id))
        if group.state is GroupState.STABLE:
            out.answer(request.replied, parked.sync_reply(group, member.assignment))
            return
        out.answer(member.awaiting_sync, SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = request.replied
        if group.is_leader(member.member_id):
            self._store_assignment(group, dict(request.assignments), out)

    def _store_assignment(
        self, group: ClassicGroup, assignments: dict[str, bytes], out: GroupDecision
    ) -> None:
        generation = group.generation

        def then(code: ErrorCode, following: GroupDecision) -> None:
            # A member may have joined or left while the record was written.
            if group.generation != generation:
                return
            if code is ErrorCode.NONE:
                if group.state is GroupState.STABLE and parked.give_assignments(group, following):
                    self._counters.completed_rebalances += 1
            elif group.state is GroupState.COMPLETING_REBALANCE:
                parked.refuse_assignments(group, code, following)
                self._rebalance.prepare_or_complete(group, RebalanceReason.WRITE_FAILED, following)

        out.write([stored_group(group, assignments)], then=then)


def _refusal(group: ClassicGroup, request: SyncRequest) -> ErrorCode:
    try:
        group.validate_member(request.member_id, request.instance_id)
    except KafkaError as error:
        return error.code
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for said, chosen in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if said is not None and chosen is not None and said != chosen:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE
