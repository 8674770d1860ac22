"""A classic group as data: its members, what they support, who leads (Kafka's `ClassicGroup`).

Pure: no clock, no log, no replies. Only the decisions beside it change it, and only the replay of
`__consumer_offsets` rebuilds it (`stored`). The last methods implement the `Group` protocol.

The counters (`awaiting_join_count`, the support of protocols) spare a group of ten thousand members
a walk over them per request; `_check()` says what they must equal.
"""

from collections import Counter
from collections.abc import Callable

from broker.coordinator.group.classic.member import Member, ProtocolList
from broker.coordinator.group.classic.state import (
    VALID_PREVIOUS_STATES,
    GroupState,
    InvalidGroupTransition,
)
from broker.coordinator.group.data.records import GroupMetadataRecord, GroupRecord
from broker.coordinator.group.data.values import (
    CommitRequest,
    DescribedGroup,
    DescribedMember,
    JoinedMember,
    JoinReply,
    ListedGroup,
)
from broker.coordinator.group.decision import (
    GroupDecision,
    join_key,
    session_key,
    session_timer,
    sync_key,
)
from broker.coordinator.group.table.group import ExpiryBase
from protocol.errors import ErrorCode, KafkaError
from storage.waits import Signal

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of consumers, whose subscriptions the broker can read."""


class ClassicGroup:
    """A `Group` with Kafka's rebalance protocol, or a simple group: offsets without members."""

    __slots__ = (
        "_awaiting_join_count",
        "_support",
        "generation",
        "group_id",
        "leader_id",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(
        self,
        group_id: str,
        *,
        state: GroupState = GroupState.EMPTY,
        generation: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
        state_timestamp_ms: int | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = GroupState.DEAD
        self.generation = generation
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.state_timestamp_ms = state_timestamp_ms
        """Wall time of the last change of state; None when the record is too old to have it."""
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """group.instance.id -> member id"""
        self.pending_join: set[str] = set()
        """Ids handed out with MEMBER_ID_REQUIRED whose owners have not come back yet."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.new_member_added = False
        """Whether a member joined during the current initial delay, which is then extended."""
        self.subscribed_topics: frozenset[str] | None = None
        """Topics of all members; None when the broker cannot read their subscriptions."""
        self._awaiting_join_count = 0
        self._support: Counter[str] = Counter()

    # ---- state

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Change the state. InvalidGroupTransition: VALID_PREVIOUS_STATES does not allow it."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InvalidGroupTransition(
                f"group {self.group_id}: {self.state.value} -> {state.value}"
            )
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether PreparingRebalance may follow."""
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the metadata of the members are consumer subscriptions."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads `topic`; True for consumers whose subscriptions are unreadable."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    # ---- members

    def add(self, member: Member, answer: Signal[JoinReply] | None = None) -> None:
        """Add a member; the first one sets the protocol type and becomes the leader."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            if member.instance_id in self.static_members:
                raise ValueError(f"{member.instance_id} is a member of {self.group_id} already")
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._support.update({name for name, _ in member.protocols})
        self.pending_join.discard(member.member_id)
        self.set_awaiting_join(member, answer)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending id; if it was the leader, the next member becomes leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._drop_support(member)
            if member.awaiting_join is not None:
                self._awaiting_join_count -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)
        return member

    def replace_static(self, instance_id: str, new_member_id: str) -> Member:
        """Give the instance a new member id; it keeps its place, leadership and assignment.

        The caller has answered the parked requests of the old id.
        """
        old_id = self.static_members[instance_id]
        # Keep the order of members: it decides who becomes the next leader.
        self.members = {
            (new_member_id if member_id == old_id else member_id): member
            for member_id, member in self.members.items()
        }
        member = self.members[new_member_id]
        member.member_id = new_member_id
        self.static_members[instance_id] = new_member_id
        if self.leader_id == old_id:
            self.leader_id = new_member_id
        if old_id in self.pending_sync:
            self.pending_sync.discard(old_id)
            self.pending_sync.add(new_member_id)
        return member

    def update(
        self,
        member: Member,
        *,
        protocols: ProtocolList,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Replace the protocols and timeouts of a member by those of its new JoinGroup."""
        self._drop_support(member)
        member.protocols = protocols
        self._support.update({name for name, _ in protocols})
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def set_awaiting_join(
        self, member: Member, answer: Signal[JoinReply] | None
    ) -> Signal[JoinReply] | None:
        """Park the member's join, or release it (None); return the answer parked before."""
        before = member.awaiting_join
        self._awaiting_join_count += (answer is not None) - (before is not None)
        member.awaiting_join = answer
        return before

    def _drop_support(self, member: Member) -> None:
        for name in {name for name, _ in member.protocols}:
            self._support[name] -= 1
            if not self._support[name]:
                del self._support[name]

    @property
    def awaiting_join_count(self) -> int:
        """How many members have a parked join."""
        return self._awaiting_join_count

    @property
    def has_all_joined(self) -> bool:
        """Whether every member has a parked join and no handed-out member id is pending."""
        return len(self.members) == self._awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of a member; 0 without members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        """Whether this member computes the assignment."""
        return self.leader_id == member_id

    def elect_joined_leader(self) -> bool:
        """Make a member that has rejoined the leader; False when none has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is not None and leader.awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def validate_member(self, member_id: str, instance_id: str | None) -> Member:
        """Return the member. Raises KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID (S-GRP-3)."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # ---- protocols

    def supports(self, protocol_type: str, protocols: ProtocolList) -> bool:
        """Whether a member with this type and these protocols is compatible with all others."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._support.get(name, 0) == count for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Return the protocol with most votes among those all support; a tie: the first voted."""
        count = len(self.members)
        candidates = {name for name, members in self._support.items() if members == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes.items(), key=lambda vote: vote[1])[0]

    def next_generation(
        self, now_ms: int, read_topics: Callable[[bytes], frozenset[str] | None]
    ) -> None:
        """Begin the next generation with the current members; without any the group is Empty."""
        self.generation += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.compute_subscribed_topics(read_topics)
        self.pending_sync.clear()
        self.transition_to(
            GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms
        )

    def compute_subscribed_topics(
        self, read_topics: Callable[[bytes], frozenset[str] | None]
    ) -> None:
        """Read the members' subscriptions if they are consumers (KIP-211, KIP-496)."""
        self.subscribed_topics = None
        if not self.uses_consumer_protocol:
            return
        topics: set[str] = set()
        if self.members:
            if self.protocol_name is None:
                return
            # Most members subscribe alike, and reading a subscription takes ten microseconds.
            for metadata in {
                member.metadata(self.protocol_name) for member in self.members.values()
            }:
                subscribed = read_topics(metadata)
                if subscribed is None:
                    return
                topics |= subscribed
        self.subscribed_topics = frozenset(topics)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """All members as the leader's JoinGroup response lists them."""
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        )

    # ---- the `Group` protocol

    @property
    def state_name(self) -> str:
        """See `Group`."""
        return self.state.value

    @property
    def member_count(self) -> int:
        """See `Group`."""
        return len(self.members)

    @property
    def is_vacant(self) -> bool:
        """See `Group`; the owner of a pending member id is about to join."""
        return self.state is GroupState.EMPTY and not self.pending_join

    @property
    def expiry_base(self) -> ExpiryBase:
        """See `Group`: retention counts from when the group became Empty; see below for others.

        In a simple group it counts from the commit, and so it does in a stable consumer group for
        topics without a subscriber. During a rebalance nothing expires (Kafka's
        `ClassicGroup.offsetExpirationCondition`).
        """
        if self.protocol_type is None:
            return ExpiryBase.COMMIT
        if self.state is GroupState.EMPTY:
            return ExpiryBase.GROUP_EMPTY
        if (
            self.state is GroupState.STABLE
            and self.uses_consumer_protocol
            and self.subscribed_topics is not None
        ):
            return ExpiryBase.COMMIT
        return ExpiryBase.NEVER

    def check_commit(self, request: CommitRequest, out: GroupDecision) -> None:
        """See `Group`."""
        if request.generation < 0:
            if self.state is GroupState.EMPTY:
                return
            if not request.member_id and request.instance_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.validate_member(request.member_id, request.instance_id)
        if request.generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if self.state is GroupState.COMPLETING_REBALANCE:
            # The member does not have its assignment yet, so it may not own the partition.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        out.schedule(session_timer(self.group_id, member.member_id, member.session_timeout_ms))

    def check_commit_in_transaction(self, request: CommitRequest) -> None:
        """See `Group`: a generation, member id or instance id that is given must be current.

        Older clients give none, and their commits are accepted even by a group with members. The
        commit does not renew the session, and is allowed during a rebalance.
        """
        named = bool(request.member_id) or request.instance_id is not None
        if request.generation >= 0 or (named and self.state is not GroupState.EMPTY):
            self.validate_member(request.member_id, request.instance_id)
            if request.generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    def check_offset_delete(self) -> None:
        """See `Group`; a group in use must be of consumers, whose subscriptions are known."""
        if self.state is not GroupState.EMPTY and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        """See `Group`."""
        if self.state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[GroupRecord]:
        """See `Group`."""
        return [GroupMetadataRecord(self.group_id, None)]

    def gone(self, out: GroupDecision) -> None:
        """See `Group`."""
        for member_id in (*self.members, *self.pending_join):
            out.cancel(session_key(self.group_id, member_id))
        out.cancel(join_key(self.group_id))
        out.cancel(sync_key(self.group_id))

    def describe(self) -> DescribedGroup:
        """See `Group`; protocol and member metadata are filled only while the group is Stable."""
        stable = self.state is GroupState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol_name or "") if stable else "",
            members=tuple(
                DescribedMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    metadata=member.metadata(self.protocol_name) if stable else b"",
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    def listed(self) -> ListedGroup:
        """See `Group`."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            state=self.state.value,
        )

    def _check(self) -> None:
        """Invariants, for tests."""
        members = self.members.values()
        waiting = sum(member.awaiting_join is not None for member in members)
        assert waiting == self._awaiting_join_count
        support = Counter(name for m in members for name in {name for name, _ in m.protocols})
        assert support == self._support
        assert {m.instance_id: m.member_id for m in members if m.instance_id is not None} == (
            self.static_members
        )
        assert all(member_id == m.member_id for member_id, m in self.members.items())
        assert (self.leader_id in self.members) if self.members else self.leader_id is None
        assert self.pending_sync <= set(self.members)
        assert not self.pending_join & set(self.members)
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert self.members
            assert self.protocol_name is not None
        if self.state is GroupState.COMPLETING_REBALANCE:
            assert not waiting
        if self.state is GroupState.EMPTY:
            assert not self.members
