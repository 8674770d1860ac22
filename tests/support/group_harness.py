"""A group coordinator on virtual time, with the requests of one group as short calls."""

from collections.abc import Callable
from itertools import count
from typing import Any

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.data.values import (
    CommitRequest,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    PartitionCommit,
    SyncReply,
    SyncRequest,
    TransactionalCommit,
)
from broker.coordinator.group.settings import GroupSettings
from broker.coordinator.group.shard import GroupShard
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.coordinator_records import (
    ConsumerProtocolSubscription,
)
from protocol.messages.versioned import encode_versioned
from storage.waits import Signal
from tests.support.coordinator_harness import CoordinatorHarness
from tests.support.manual_clock import ManualClock
from tests.support.memory_partition_log import MemoryPartitionLog

INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str, version: int = 0) -> bytes:
    """Return a consumer's metadata with its subscription."""
    return encode_versioned(
        ConsumerProtocolSubscription, version, ConsumerProtocolSubscription(topics=list(topics))
    )


class Parked:
    """The reply that a signal brings; `ask` returns the signal, or refuses with KafkaError."""

    def __init__(
        self,
        ask: Callable[[], Signal[Any]],
        refused: Callable[[ErrorCode], Any] = lambda code: code,
    ) -> None:
        try:
            self._signal = ask()
        except KafkaError as error:
            self._signal = Signal()
            self._signal.fire(refused(error.code))

    @property
    def done(self) -> bool:
        return self._signal.fired

    @property
    def reply(self) -> Any:
        assert self.done, "not answered yet"
        return self._signal.value


class GroupHarness(CoordinatorHarness):
    """The group under test; every call checks the shards' invariants afterwards."""

    def __init__(
        self,
        log: MemoryPartitionLog | None = None,
        clock: ManualClock | None = None,
        **settings: Any,
    ) -> None:
        limits = settings.pop("limits", {})
        super().__init__(log, clock)
        self.ids = settings.pop("ids", None) or count(1)
        topic_size = settings.pop("topic_size", None)
        self.coordinator = GroupCoordinator(
            GroupSettings(limits=GroupLimits(**limits), **settings),
            self.log,
            self.deadlines,
            self.clock,
            new_id=lambda: f"id{next(self.ids)}",
            topic_size=topic_size,
        )
        self.coordinator.startup()

    def shard(self, group: str = "g") -> GroupShard:
        return self.coordinator._runtime.shard_of(group)

    def group(self, group: str = "g") -> ClassicGroup:
        found = self.shard(group).group(group)
        assert isinstance(found, ClassicGroup)
        return found

    def load(self, group: str = "g") -> None:
        """Load the partition of this group."""
        self.load_shard(lambda: self.shard(group))

    def restarted(self, group: str = "g", **settings: Any) -> "GroupHarness":
        """Return another broker over the same log, with the partition of this group loaded."""
        again = GroupHarness(log=self.log, clock=self.clock, **settings)
        again.load(group)
        return again

    # ---- requests

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        require_id: bool = False,
        skip: bool = False,
    ) -> Parked:
        request = JoinRequest(
            group_id=group,
            member_id=member_id,
            instance_id=instance,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=(("range", subscription("t")),) if protocols is None else protocols,
            require_known_member_id=require_id,
            supports_skip_assignment=skip,
        )
        parked = Parked(
            lambda: self.coordinator.join(request),
            lambda code: JoinReply(error=code, member_id=member_id),
        )
        self.check()
        return parked

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Parked:
        request = SyncRequest(
            group_id=group,
            member_id=member_id,
            instance_id=instance,
            generation=generation,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=tuple((assignments or {}).items()),
        )
        parked = Parked(lambda: self.coordinator.sync(request), lambda code: SyncReply(error=code))
        self.check()
        return parked

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        try:
            return self.coordinator.heartbeat(group, member_id, instance, generation)
        except KafkaError as error:
            return error.code

    def leave(self, *members: str | tuple[str, str | None], group: str = "g") -> LeaveReply:
        leaving = tuple(
            LeavingMember(member_id=one)
            if isinstance(one, str)
            else LeavingMember(member_id=one[0], instance_id=one[1])
            for one in members
        )
        try:
            reply = self.coordinator.leave(group, leaving)
        except KafkaError as error:
            return LeaveReply(error=error.code)
        self.check()
        return reply

    def commit(
        self,
        offset: int,
        *,
        topic: str = "t",
        partition: int = 0,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str = "",
        leader_epoch: int = -1,
        retention_ms: int | None = None,
        unknown_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
    ) -> Parked:
        request = CommitRequest(
            group_id=group,
            member_id=member_id,
            instance_id=instance,
            generation=generation,
            retention_ms=retention_ms,
            unknown_group=unknown_group,
            partitions=(
                PartitionCommit(
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    leader_epoch=leader_epoch,
                    metadata=metadata,
                ),
            ),
        )
        parked = Parked(lambda: self.coordinator.commit_offsets(request))
        self.check()
        return parked

    def commit_in_transaction(
        self, offset: int, *, producer_id: int = 9, instance: str | None = None, **member: Any
    ) -> Parked:
        """Commit an offset of "g" and "t" in partition 0; `member`: its id and generation."""
        commit = CommitRequest(
            group_id="g",
            instance_id=instance,
            partitions=(PartitionCommit(topic="t", partition=0, offset=offset),),
            **member,
        )
        request = TransactionalCommit(commit=commit, producer_id=producer_id, producer_epoch=0)
        parked = Parked(lambda: self.coordinator.commit_in_transaction(request))
        self.check()
        return parked

    def is_unstable(self) -> bool:
        """Whether a transaction with an offset of "g" is open."""
        return self.coordinator.unstable_offsets("g")("t", 0)

    def offset(self, topic: str = "t", partition: int = 0) -> CommittedOffset:
        """Return what "g" has committed."""
        found = self.coordinator.fetch_offset("g")(topic, partition)
        assert found is not None
        return found

    def committed(self, topic: str = "t", partition: int = 0, *, group: str = "g") -> int | None:
        found = self.coordinator.fetch_offset(group)(topic, partition)
        return None if found is None else found.offset

    def delete_group(self, group: str = "g") -> Parked:
        parked = Parked(lambda: self.coordinator.delete_group(group))
        self.check()
        return parked

    # ---- a group in one call

    def joined(self, size: int = 1) -> list[str]:
        """Return the member ids of a first generation without assignments; the first leads."""
        joins = [self.join() for _ in range(size)]
        self.advance_ms(size * INITIAL_DELAY_MS)
        return [one.reply.member_id for one in joins]

    def stable_group(self, size: int = 1, **join: Any) -> tuple[int, list[str]]:
        """Return (generation, member ids); the first leads, each is assigned its own id."""
        parked = [self.join(**join) for _ in range(size)]
        self.advance_ms(INITIAL_DELAY_MS)
        if not parked[0].done:
            self.advance_ms(INITIAL_DELAY_MS)
        replies: list[JoinReply] = [one.reply for one in parked]
        assert all(reply.error is ErrorCode.NONE for reply in replies), replies
        ids = [reply.member_id for reply in replies]
        group = join.get("group", "g")
        assignments = {member_id: member_id.encode() for member_id in ids}
        for member_id in ids[1:]:
            self.sync(member_id, replies[0].generation, group=group)
        self.sync(ids[0], replies[0].generation, assignments, group=group)
        return replies[0].generation, ids
