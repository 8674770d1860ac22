"""The phases of a rebalance: everybody joins again, then the leader assigns (S-GRP-1).

Every transition into and out of PreparingRebalance is here. The requests (`joining`, `syncing`,
`departures`, `static_members`) call it after they changed the membership, timers when a phase has
lasted too long.
"""

from collections.abc import Callable

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.phases import parked, sessions
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.classic.stored import stored_group
from broker.coordinator.group.data.values import JoinReply, SyncReply
from broker.coordinator.group.decision import (
    GroupDecision,
    GroupTimer,
    RebalanceReason,
    TimerKind,
    join_key,
    session_key,
    sync_key,
)
from broker.coordinator.group.statistics import GroupCounters
from protocol.errors import ErrorCode


class Rebalance:
    """Moves groups through the phases of a rebalance; one object serves a whole partition."""

    def __init__(
        self,
        limits: GroupLimits,
        counters: GroupCounters,
        *,
        now_ms: Callable[[], int],
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._limits = limits
        self._counters = counters
        self._now_ms = now_ms
        self._read_topics = read_topics

    def prepare_or_complete(
        self, group: ClassicGroup, reason: RebalanceReason, out: GroupDecision
    ) -> None:
        """A member is new or changed: begin a rebalance, or continue the one under way."""
        if group.can_rebalance:
            self.prepare(group, reason, out)
        else:
            self.maybe_complete_join(group, out)

    def prepare(self, group: ClassicGroup, reason: RebalanceReason, out: GroupDecision) -> None:
        """Begin a rebalance: every member has to join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            parked.refuse_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS, out)
        group.pending_sync.clear()
        out.cancel(sync_key(group.group_id))
        self._counters.count_rebalance(reason.value)
        initial = group.state is GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, self._now_ms())
        if initial:
            group.new_member_added = False
            delay_ms = self._limits.initial_rebalance_delay_ms
            out.schedule(
                GroupTimer(
                    kind=TimerKind.INITIAL_JOIN,
                    group_id=group.group_id,
                    delay_ms=delay_ms,
                    remaining_ms=max(group.rebalance_timeout_ms - delay_ms, 0),
                )
            )
        elif group.has_all_joined:
            self.complete_join(group, out)
        else:
            self._wait_for_joins(group, out)

    def _wait_for_joins(self, group: ClassicGroup, out: GroupDecision) -> None:
        out.schedule(
            GroupTimer(
                kind=TimerKind.JOIN,
                group_id=group.group_id,
                delay_ms=group.rebalance_timeout_ms,
            )
        )

    def maybe_complete_join(self, group: ClassicGroup, out: GroupDecision) -> None:
        """End the join phase early when all have joined, but never the initial delay."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_joined
        ):
            self.complete_join(group, out)

    def on_initial_delay(self, group: ClassicGroup, timer: GroupTimer, out: GroupDecision) -> None:
        """The initial delay is over: extend it if a member joined, else complete (S-GRP-1)."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if not group.new_member_added or timer.remaining_ms == 0:
            self.complete_join(group, out)
            return
        group.new_member_added = False
        delay_ms = min(self._limits.initial_rebalance_delay_ms, timer.remaining_ms)
        out.schedule(
            GroupTimer(
                kind=TimerKind.INITIAL_JOIN,
                group_id=group.group_id,
                delay_ms=delay_ms,
                remaining_ms=max(timer.remaining_ms - timer.delay_ms, 0),
            )
        )

    def complete_join(self, group: ClassicGroup, out: GroupDecision) -> None:
        """End the join phase, early or by the JOIN timer: those that joined form the generation."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        out.cancel(join_key(group.group_id))
        for member in [m for m in group.members.values() if m.awaiting_join is None]:
            if member.instance_id is None:
                group.remove(member.member_id)
                out.cancel(session_key(group.group_id, member.member_id))
        if group.members and not group.elect_joined_leader():
            # All members are static and away: wait until they join or their sessions expire.
            self._wait_for_joins(group, out)
            return
        group.next_generation(self._now_ms(), self._read_topics)
        if not group.members:
            # If this write fails, a restart restores the last generation, whose members' sessions
            # then expire: harmless.
            out.write([stored_group(group, {})])
            return
        for member in group.members.values():
            out.answer(
                group.set_awaiting_join(member, None), parked.generation_reply(group, member)
            )
            sessions.watch(group, member.member_id, member.session_timeout_ms, out)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        out.schedule(
            GroupTimer(
                kind=TimerKind.SYNC,
                group_id=group.group_id,
                delay_ms=group.rebalance_timeout_ms,
                generation=group.generation,
            )
        )

    def on_sync_timeout(self, group: ClassicGroup, timer: GroupTimer, out: GroupDecision) -> None:
        """The SYNC timer fired: remove members without SyncGroup and have the others rejoin."""
        if timer.generation != group.generation or not group.pending_sync:
            return
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        for member_id in list(group.pending_sync):
            group.remove(member_id)
            out.cancel(session_key(group.group_id, member_id))
        self.prepare(group, RebalanceReason.SYNC_EXPIRED, out)

    def after_removal(
        self, group: ClassicGroup, reason: RebalanceReason, out: GroupDecision, *, was_member: bool
    ) -> None:
        """Continue after the removal of a member (`was_member`) or of a pending id."""
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            if was_member:
                self.prepare(group, reason, out)
        elif group.members:
            self.maybe_complete_join(group, out)
        elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
            # All members are gone: there is nothing to wait for, even in the initial delay.
            self.complete_join(group, out)

    # ---- life of the group in memory

    def on_loaded(self, group: ClassicGroup, out: GroupDecision) -> None:
        """The group was read from the log: start the sessions of its members."""
        for member in group.members.values():
            sessions.watch(group, member.member_id, member.session_timeout_ms, out)
        if len(group.members) > self._limits.max_size:
            self.prepare(group, RebalanceReason.OVER_CAPACITY, out)

    def close(self, group: ClassicGroup, code: ErrorCode, out: GroupDecision) -> None:
        """Drop the group from this broker's memory: answer all parked requests with `code`."""
        for member in list(group.members.values()):
            parked.release(
                group,
                member,
                JoinReply(error=code, member_id=member.member_id),
                SyncReply(error=code),
                out,
            )
        group.gone(out)
        group.transition_to(GroupState.DEAD, self._now_ms())
