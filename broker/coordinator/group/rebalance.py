"""How a classic group joins, syncs, stays alive and falls apart: Kafka's rebalance protocol.

Pure decisions on one `Group`: each method changes the group and says in an `Outcome` what is to
be written, answered and timed. The wall time comes in as `now_ms`, new ids from `new_id`.

    Empty --join--> PreparingRebalance --all joined, or time is up--> CompletingRebalance
                     ^     |  nobody left                                  | leader synced,
                     |     v                                               v record written
                     |   Empty                                          Stable
                     +---- join of leader, changed or new member; leave; session expired ----+

Rules, with the seeds' ids

* S-GRP-1 The first rebalance of an empty group waits `group.initial.rebalance.delay.ms`, again
  for each join that came meanwhile, up to the rebalance timeout. A later one waits until all
  members rejoined, at most the largest rebalance timeout; dynamic members that did not come are
  out, static ones stay until their session expires.
* S-GRP-2 A dynamic newcomer (JoinGroup v4+) first gets an id and has a session timeout to come
  back with it. While such a one is pending a rebalance does not end early.
* S-GRP-3 A static member that comes back without id takes over the old id's place. In a stable
  group whose protocol stays the same nobody else notices.
* A parked request that the same member repeats on another connection is answered
  REBALANCE_IN_PROGRESS: Kafka leaves the old connection hanging.
"""

from collections.abc import Callable
from dataclasses import dataclass

from broker.coordinator.group.outcome import (
    Outcome,
    RebalanceReason,
    Timer,
    TimerKind,
    join_key,
    session_key,
    sync_key,
)
from broker.coordinator.group.state import Answer, Group, GroupState, Member
from broker.coordinator.group.stored import stored_group
from broker.coordinator.group.values import (
    UNKNOWN_MEMBER,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeaveResult,
    LeavingMember,
    SyncReply,
    SyncRequest,
)
from protocol.errors import ErrorCode, KafkaError

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the first join of a new member stays parked: if its client died meanwhile nobody
would ever notice, for a parked connection is not read (Kafka: 5 minutes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """The broker's configuration of classic groups."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647


class Rebalance:
    """The decisions; one object serves all groups of a partition."""

    def __init__(
        self,
        limits: GroupLimits,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        read_topics: Callable[[bytes], frozenset[str] | None],
    ) -> None:
        self._limits = limits
        self._now_ms = now_ms
        self._new_id = new_id
        self._read_topics = read_topics

    # ---- join

    def join(self, group: Group, request: JoinRequest, answer: Answer, out: Outcome) -> None:
        """JoinGroup; `answer` is used now or parked in the group."""
        member_id = request.member_id
        if group.state is GroupState.DEAD:
            out.answer(answer, self._refused(request, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif not self._has_room(group, member_id):
            self._turn_away(group, member_id, out)
            out.answer(answer, JoinReply(error=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not group.supports(request.protocol_type, request.protocols):
            out.answer(answer, self._refused(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        elif member_id == UNKNOWN_MEMBER:
            self._join_without_id(group, request, answer, out)
        elif member_id in group.pending_join and request.instance_id is None:
            self._add(group, request, member_id, answer, out)
        else:
            self._rejoin(group, request, answer, out)

    @staticmethod
    def _refused(request: JoinRequest, code: ErrorCode) -> JoinReply:
        return JoinReply(error=code, member_id=request.member_id)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Whether group.max.size lets this one in.

        While a group prepares, those that wait are counted rather than the members: the group may
        be over its size already (the limit was lowered), and then the last to come are out.
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

    def _turn_away(self, group: Group, member_id: str, out: Outcome) -> None:
        if member_id == UNKNOWN_MEMBER:
            return
        group.remove(member_id)
        out.cancel(session_key(group.group_id, member_id))
        self._maybe_complete_join(group, out)

    def _join_without_id(
        self, group: Group, request: JoinRequest, answer: Answer, out: Outcome
    ) -> None:
        instance_id = request.instance_id
        if instance_id is not None:
            new_id = f"{instance_id}-{self._new_id()}"
            if instance_id in group.static_members:
                self._replace_static(group, request, new_id, answer, out)
            else:
                self._add(group, request, new_id, answer, out)
            return
        new_id = f"{request.client_id}-{self._new_id()}"
        if not request.require_known_member_id:
            self._add(group, request, new_id, answer, out)
            return
        group.pending_join.add(new_id)
        self._watch(group, new_id, request.session_timeout_ms, out)
        out.answer(answer, JoinReply(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))

    def _add(
        self, group: Group, request: JoinRequest, member_id: str, answer: Answer, out: Outcome
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
        group.add(member, answer)
        self._watch(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS, out)
        self._prepare_or_complete(group, RebalanceReason.MEMBER_JOINED, out)

    def _rejoin(self, group: Group, request: JoinRequest, answer: Answer, out: Outcome) -> None:
        try:
            member = group.validate_member(request.member_id, request.instance_id)
        except KafkaError as error:
            out.answer(answer, self._refused(request, error.code))
            return
        unchanged = member.protocols == request.protocols
        if group.state is GroupState.PREPARING_REBALANCE:
            self._update(group, member, request, answer, out)
            self._maybe_complete_join(group, out)
        elif group.state is GroupState.COMPLETING_REBALANCE and unchanged:
            # Its JoinGroup response got lost, most likely: tell it again.
            out.answer(answer, self._generation_reply(group, member))
        elif group.state is GroupState.STABLE and unchanged and group.leader_id != member.member_id:
            out.answer(answer, self._generation_reply(group, member, as_follower=True))
        elif group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            # The leader's join always rebalances: it may know of new partitions.
            self._update(group, member, request, answer, out)
            reason = (
                RebalanceReason.LEADER_REJOINED if unchanged else RebalanceReason.MEMBER_CHANGED
            )
            self._prepare_or_complete(group, reason, out)
        else:
            out.answer(answer, self._refused(request, ErrorCode.UNKNOWN_MEMBER_ID))

    def _update(
        self, group: Group, member: Member, request: JoinRequest, answer: Answer, out: Outcome
    ) -> None:
        group.update(
            member,
            protocols=request.protocols,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
        )
        replaced = group.set_awaiting_join(member, answer)
        out.answer(
            replaced,
            JoinReply(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id),
        )

    def _replace_static(
        self, group: Group, request: JoinRequest, new_id: str, answer: Answer, out: Outcome
    ) -> None:
        instance_id = request.instance_id
        assert instance_id is not None
        old_id = group.static_members[instance_id]
        old_leader = group.leader_id
        member = group.members[old_id]
        self._release(
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
        self._update(group, member, request, answer, out)
        self._watch(group, new_id, member.session_timeout_ms, out)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may be assigning to the old id right now.
            self._prepare(group, RebalanceReason.STATIC_MEMBER_REPLACED, out)
        elif group.state is not GroupState.STABLE:
            self._maybe_complete_join(group, out)
        elif group.select_protocol() != group.protocol_name:
            self._prepare_or_complete(group, RebalanceReason.PROTOCOL_CHANGED, out)
        else:
            self._store_replacement(group, request, member, (old_id, old_leader, before), out)

    def _store_replacement(
        self,
        group: Group,
        request: JoinRequest,
        member: Member,
        old: tuple[str, str | None, tuple[tuple[tuple[str, bytes], ...], int, int]],
        out: Outcome,
    ) -> None:
        """A stable group takes the new id without a rebalance, once that is written."""
        old_id, old_leader, (protocols, rebalance_timeout_ms, session_timeout_ms) = old
        new_id, generation = member.member_id, group.generation
        assignments = {m.member_id: m.assignment for m in group.members.values()}

        def after(code: ErrorCode, then: Outcome) -> None:
            if group.state is not GroupState.STABLE or group.generation != generation:
                return  # A rebalance began meanwhile and will answer the parked join.
            answer = group.set_awaiting_join(member, None)
            if code is ErrorCode.NONE:
                skips = request.supports_skip_assignment and group.leader_id == new_id
                reply = JoinReply(
                    member_id=new_id,
                    generation=generation,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    # Below v9 the old leader's id makes the returning one a follower, so that it
                    # does not assign without having been told the members.
                    leader=(group.leader_id if request.supports_skip_assignment else old_leader)
                    or "",
                    skip_assignment=skips,
                    members=group.joined_members() if skips else (),
                )
                then.answer(answer, reply)
                return
            if member.instance_id is not None and new_id in group.members:
                group.update(
                    member,
                    protocols=protocols,
                    rebalance_timeout_ms=rebalance_timeout_ms,
                    session_timeout_ms=session_timeout_ms,
                )
                group.replace_static(member.instance_id, old_id)
                then.cancel(session_key(group.group_id, new_id))
                self._watch(group, old_id, session_timeout_ms, then)
            then.answer(answer, JoinReply(error=code))

        out.write([stored_group(group, assignments)], after)

    def _generation_reply(
        self, group: Group, member: Member, *, as_follower: bool = False
    ) -> JoinReply:
        leads = group.is_leader(member.member_id) and not as_follower
        return JoinReply(
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader_id or "",
            member_id=member.member_id,
            members=group.joined_members() if leads else (),
        )

    # ---- the phases

    def _prepare_or_complete(self, group: Group, reason: RebalanceReason, out: Outcome) -> None:
        if group.can_rebalance:
            self._prepare(group, reason, out)
        else:
            self._maybe_complete_join(group, out)

    def _prepare(self, group: Group, reason: RebalanceReason, out: Outcome) -> None:
        """Everybody has to join again."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self._propagate_assignment(group, {}, ErrorCode.REBALANCE_IN_PROGRESS, out)
        group.pending_sync.clear()
        out.cancel(sync_key(group.group_id))
        out.rebalances.append(reason)
        initial = group.state is GroupState.EMPTY
        group.transition_to(GroupState.PREPARING_REBALANCE, self._now_ms())
        if initial:
            group.new_member_added = False
            delay_ms = self._limits.initial_rebalance_delay_ms
            out.schedule(
                Timer(
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

    def _wait_for_joins(self, group: Group, out: Outcome) -> None:
        out.schedule(
            Timer(
                kind=TimerKind.JOIN,
                group_id=group.group_id,
                delay_ms=group.rebalance_timeout_ms,
            )
        )

    def _maybe_complete_join(self, group: Group, out: Outcome) -> None:
        """End the join phase early when nobody is missing; never the initial delay."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_joined
        ):
            self.complete_join(group, out)

    def on_initial_delay(self, group: Group, timer: Timer, out: Outcome) -> None:
        """The initial delay is over: extend it when somebody came, else go on (S-GRP-1)."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if not group.new_member_added or timer.remaining_ms == 0:
            self.complete_join(group, out)
            return
        group.new_member_added = False
        delay_ms = min(self._limits.initial_rebalance_delay_ms, timer.remaining_ms)
        out.schedule(
            Timer(
                kind=TimerKind.INITIAL_JOIN,
                group_id=group.group_id,
                delay_ms=delay_ms,
                remaining_ms=max(timer.remaining_ms - timer.delay_ms, 0),
            )
        )

    def complete_join(self, group: Group, out: Outcome) -> None:
        """The join phase ends: who came forms the next generation; also the JOIN timer."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        out.cancel(join_key(group.group_id))
        for member in [m for m in group.members.values() if m.awaiting_join is None]:
            if member.instance_id is None:
                group.remove(member.member_id)
                out.cancel(session_key(group.group_id, member.member_id))
        if group.members and not group.elect_joined_leader():
            # Only static members that are away: wait until they come or their sessions expire.
            self._wait_for_joins(group, out)
            return
        group.next_generation(self._now_ms(), self._read_topics)
        if not group.members:
            # When this write fails the last generation comes back after a restart, with members
            # whose sessions then expire: harmless.
            out.write([stored_group(group, {})])
            return
        for member in group.members.values():
            out.answer(group.set_awaiting_join(member, None), self._generation_reply(group, member))
            self._watch(group, member.member_id, member.session_timeout_ms, out)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        out.schedule(
            Timer(
                kind=TimerKind.SYNC,
                group_id=group.group_id,
                delay_ms=group.rebalance_timeout_ms,
                generation=group.generation,
            )
        )

    # ---- sync

    def sync(self, group: Group, request: SyncRequest, answer: Answer, out: Outcome) -> None:
        """SyncGroup; followers are parked until the leader's assignment is written."""
        code = self._sync_refusal(group, request)
        if code is not ErrorCode.NONE:
            out.answer(answer, SyncReply(error=code))
            return
        member = group.members[request.member_id]
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            out.cancel(sync_key(group.group_id))
        if group.state is GroupState.STABLE:
            out.answer(answer, self._sync_reply(group, member.assignment))
            return
        out.answer(member.awaiting_sync, SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.awaiting_sync = answer
        if group.is_leader(member.member_id):
            self._store_assignment(group, dict(request.assignments), out)

    @staticmethod
    def _sync_refusal(group: Group, request: SyncRequest) -> ErrorCode:
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
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

    def _store_assignment(self, group: Group, assignments: dict[str, bytes], out: Outcome) -> None:
        generation = group.generation

        def after(code: ErrorCode, then: Outcome) -> None:
            # Somebody may have joined or left while the record was written.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if code is ErrorCode.NONE:
                self._propagate_assignment(group, assignments, ErrorCode.NONE, then)
                group.transition_to(GroupState.STABLE, self._now_ms())
                then.completed_rebalances += 1
            else:
                self._propagate_assignment(group, {}, code, then)
                self._prepare_or_complete(group, RebalanceReason.WRITE_FAILED, then)

        out.write([stored_group(group, assignments)], after)

    def _propagate_assignment(
        self, group: Group, assignments: dict[str, bytes], code: ErrorCode, out: Outcome
    ) -> None:
        """Give everybody its assignment, and those that wait for it their answer."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.awaiting_sync is None:
                continue
            out.answer(
                member.awaiting_sync,
                self._sync_reply(group, member.assignment)
                if code is ErrorCode.NONE
                else SyncReply(error=code),
            )
            member.awaiting_sync = None
            # While it waited its session timer may have fired without effect: begin anew.
            self._watch(group, member.member_id, member.session_timeout_ms, out)

    @staticmethod
    def _sync_reply(group: Group, assignment: bytes) -> SyncReply:
        return SyncReply(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=assignment,
        )

    def on_sync_timeout(self, group: Group, timer: Timer, out: Outcome) -> None:
        """Who has not synced by now is out, and the others join again."""
        if timer.generation != group.generation or not group.pending_sync:
            return
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        for member_id in list(group.pending_sync):
            group.remove(member_id)
            out.cancel(session_key(group.group_id, member_id))
        self._prepare(group, RebalanceReason.SYNC_EXPIRED, out)

    # ---- staying alive

    def heartbeat(
        self, group: Group, member_id: str, instance_id: str | None, generation: int, out: Outcome
    ) -> ErrorCode:
        """Heartbeat: renews the session; the code tells the member what to do (S-GRP-2)."""
        if group.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        try:
            member = group.validate_member(member_id, instance_id)
        except KafkaError as error:
            return error.code
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._watch(group, member_id, member.session_timeout_ms, out)
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def renew_session(self, group: Group, member_id: str, out: Outcome) -> None:
        """Any sign of life other than a heartbeat."""
        self._watch(group, member_id, group.members[member_id].session_timeout_ms, out)

    @staticmethod
    def _watch(group: Group, member_id: str, timeout_ms: int, out: Outcome) -> None:
        out.schedule(
            Timer(
                kind=TimerKind.SESSION,
                group_id=group.group_id,
                delay_ms=timeout_ms,
                member_id=member_id,
            )
        )

    def on_session_timeout(self, group: Group, member_id: str, out: Outcome) -> None:
        """No sign of life: a pending id is forgotten, a member is out."""
        member = group.members.get(member_id)
        if member is not None and member.satisfies_heartbeat:
            return
        if member is None and member_id not in group.pending_join:
            return
        self._remove(group, member_id, out)
        self._after_removal(
            group, RebalanceReason.SESSION_EXPIRED, out, was_member=member is not None
        )

    # ---- leaving

    def leave(self, group: Group, leaving: tuple[LeavingMember, ...], out: Outcome) -> LeaveReply:
        """LeaveGroup of one or many, by member id or by instance id alone (S-GRP-3)."""
        if group.state is GroupState.DEAD:
            return LeaveReply(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        results = []
        members_before = len(group.members)
        for one in leaving:
            code = self._leave_one(group, one, out)
            results.append(
                LeaveResult(member_id=one.member_id, instance_id=one.instance_id, error=code)
            )
        if any(result.error is ErrorCode.NONE for result in results):
            self._after_removal(
                group,
                RebalanceReason.MEMBER_LEFT,
                out,
                was_member=len(group.members) < members_before,
            )
        return LeaveReply(members=tuple(results))

    def _leave_one(self, group: Group, one: LeavingMember, out: Outcome) -> ErrorCode:
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
        self._remove(group, member_id, out)
        return ErrorCode.NONE

    def _remove(self, group: Group, member_id: str, out: Outcome) -> None:
        member = group.members.get(member_id)
        if member is not None:
            # Told so, a member that is alive after all begins anew.
            self._release(
                group,
                member,
                JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID),
                SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID),
                out,
            )
        group.remove(member_id)
        out.cancel(session_key(group.group_id, member_id))

    def _after_removal(
        self, group: Group, reason: RebalanceReason, out: Outcome, *, was_member: bool
    ) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            if was_member:
                self._prepare(group, reason, out)
        elif group.members:
            self._maybe_complete_join(group, out)
        elif group.state is GroupState.PREPARING_REBALANCE and group.has_all_joined:
            # Everybody is gone: nothing to wait for, not even in the initial delay.
            self.complete_join(group, out)

    @staticmethod
    def _release(
        group: Group, member: Member, join: JoinReply, sync: SyncReply, out: Outcome
    ) -> None:
        """Answer what the member has parked."""
        out.answer(group.set_awaiting_join(member, None), join)
        out.answer(member.awaiting_sync, sync)
        member.awaiting_sync = None

    # ---- life of the group in memory

    def on_loaded(self, group: Group, out: Outcome) -> None:
        """The group was read from the log: its members' sessions begin now."""
        for member in group.members.values():
            self._watch(group, member.member_id, member.session_timeout_ms, out)
        if len(group.members) > self._limits.max_size:
            self._prepare(group, RebalanceReason.OVER_CAPACITY, out)

    def close(self, group: Group, code: ErrorCode, out: Outcome) -> None:
        """The group leaves this broker's memory: nobody is left waiting."""
        for member in list(group.members.values()):
            self._release(
                group,
                member,
                JoinReply(error=code, member_id=member.member_id),
                SyncReply(error=code),
                out,
            )
            out.cancel(session_key(group.group_id, member.member_id))
        for member_id in group.pending_join:
            out.cancel(session_key(group.group_id, member_id))
        out.cancel(join_key(group.group_id))
        out.cancel(sync_key(group.group_id))
        group.transition_to(GroupState.DEAD, self._now_ms())
