"""The group coordinator: the entrance for requests (Kafka's `GroupCoordinatorService`).

It finds the partition of a group, lets that partition's shard decide, and has the runtime carry
out the decision (`broker.coordinator.runtime`). A request that may have to wait returns a signal,
which its handler awaits: a write fires it, or the group in which it is parked.

* A commit is answered when its records are durable, and is visible from then on (S-GRP-4).
* Requests to a partition that is not served here raise KafkaError: COORDINATOR_LOAD_IN_PROGRESS,
  NOT_COORDINATOR; before `startup` and after `shutdown`: COORDINATOR_NOT_AVAILABLE.
* Every batch goes through `PartitionWriter.append`; a commit of many partitions is one batch.
  Tombstones may be very many and are split into several.

Called by the handlers in `broker/api`, made by `broker/components.py`. After
`kafka.coordinator.group`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Final

from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.offsets import CommittedOffset
from broker.coordinator.group.data.serde import WRITTEN_OFFSET_VALUE, encode_record
from broker.coordinator.group.data.values import (
    CommitRequest,
    DescribedGroup,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    ListedGroup,
    SyncReply,
    SyncRequest,
    TransactionalCommit,
)
from broker.coordinator.group.decision import GroupDecision
from broker.coordinator.group.expiry_task import ExpiryTask
from broker.coordinator.group.settings import GroupSettings
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.statistics import GroupCounters, GroupOffsets, GroupStatistics
from broker.coordinator.group.write_counts import WriteCounts
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime.hooks import CoordinatorHooks
from broker.coordinator.runtime.runtime import CoordinatorRuntime
from broker.coordinator.runtime.timers import Timers
from broker.deadlines import Deadlines
from protocol.errors import ErrorCode, KafkaError
from protocol.types import OFFSETS_TOPIC
from storage.clock import Clock
from storage.waits import PAUSE, Signal

_GROUPS_AT_ONCE: Final = 256
"""Groups counted between two pauses, which cost more than to count one: a tenth of a millisecond.
"""


class GroupCoordinator:
    """Passes each request to the shard of its group; opens and closes shards as this broker is
    elected and resigns."""

    def __init__(
        self,
        settings: GroupSettings,
        writer: PartitionWriter,
        deadlines: Deadlines,
        clock: Clock,
        *,
        new_id: Callable[[], str],
        topic_size: Callable[[], int | None] | None = None,
    ) -> None:
        """`topic_size`: see `CoordinatorRuntime`."""
        self.settings = settings
        self._clock = clock
        self._timers = Timers(deadlines, clock)
        self._new_id = new_id
        self._counters = GroupCounters()
        self._runtime: CoordinatorRuntime[GroupShard, GroupDecision] = CoordinatorRuntime(
            OFFSETS_TOPIC,
            writer,
            clock,
            self._timers,
            CoordinatorHooks(
                new_shard=self._new_shard,
                on_active=self._on_active,
                on_closed=self._on_closed,
                new_decision=GroupDecision,
                encode=(
                    encode_record
                    if settings.offset_version == WRITTEN_OFFSET_VALUE
                    else partial(encode_record, offset_version=settings.offset_version)
                ),
                on_settled=WriteCounts(self._counters).on_settled,
                compression=settings.compression,
            ),
            partition_count=settings.partition_count,
            slice_bytes=settings.load_buffer_bytes,
            topic_size=topic_size,
        )
        self._expiry = ExpiryTask(
            self._runtime,
            deadlines,
            self._counters,
            interval_ms=settings.retention_check_interval_ms,
        )
        self.run = self._runtime.tasks.run
        self.on_elected = self._runtime.elect
        self.on_resigned = self._runtime.resign
        self.partition_for = self._runtime.partition_for

    # ---- life

    def startup(
        self, partitions: Iterable[tuple[int, int]] = (), *, partition_count: int | None = None
    ) -> None:
        """See `CoordinatorRuntime.startup`."""
        self._expiry.start()
        self._runtime.startup(partitions, partition_count=partition_count)

    def shutdown(self) -> None:
        """Stop serving: answer parked requests with COORDINATOR_NOT_AVAILABLE."""
        self._expiry.stop()
        self._runtime.shutdown()
        self._timers.clear()

    def _new_shard(self, partition: int) -> GroupShard:
        return GroupShard(
            partition,
            self.settings.limits,
            self._counters,
            now_ms=self._clock.wall_ms,
            new_id=self._new_id,
            retention_ms=self.settings.retention_ms,
        )

    def _on_active(self, shard: GroupShard) -> None:
        out = GroupDecision()
        shard.on_loaded(out)
        self._runtime.carry_out(shard, out)

    def _on_closed(self, shard: GroupShard, code: ErrorCode) -> None:
        out = GroupDecision()
        shard.close(code, out)
        self._runtime.carry_out(shard, out)

    @staticmethod
    def _require_group_id(group_id: str) -> None:
        """Refuse the empty group id: it may hold offsets, as in Kafka, but no members."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)

    # ---- membership

    def join(self, request: JoinRequest) -> Signal[JoinReply]:
        """JoinGroup. Raises KafkaError."""
        self._require_group_id(request.group_id)
        limits = self.settings.limits
        if not (
            limits.min_session_timeout_ms
            <= request.session_timeout_ms
            <= limits.max_session_timeout_ms
        ):
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        shard = self._runtime.shard_of(request.group_id)
        out = GroupDecision()
        shard.classic.join(request, out)
        self._runtime.carry_out(shard, out)
        return request.replied

    def sync(self, request: SyncRequest) -> Signal[SyncReply]:
        """SyncGroup. Raises KafkaError."""
        self._require_group_id(request.group_id)
        shard = self._runtime.shard_of(request.group_id)
        out = GroupDecision()
        shard.classic.sync(request, out)
        self._runtime.carry_out(shard, out)
        return request.replied

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat; NONE while the group loads, as its state is unknown. Raises KafkaError."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        try:
            shard = self._runtime.shard_of(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE
            raise
        out = GroupDecision()
        code = shard.classic.heartbeat(group_id, member_id, instance_id, generation, out)
        self._runtime.carry_out(shard, out)
        return code

    def leave(self, group_id: str, leaving: tuple[LeavingMember, ...]) -> LeaveReply:
        """LeaveGroup. Raises KafkaError."""
        self._require_group_id(group_id)
        shard = self._runtime.shard_of(group_id)
        out = GroupDecision()
        reply = shard.classic.leave(group_id, leaving, out)
        self._runtime.carry_out(shard, out)
        return reply

    # ---- offsets

    def commit_offsets(self, request: CommitRequest) -> Signal[ErrorCode]:
        """OffsetCommit; the signal brings NONE when the offsets are durable, or the write's error.

        The caller has left out what cannot be committed (unknown topics, metadata too large).
        Raises KafkaError.
        """
        shard = self._runtime.shard_of(request.group_id)
        out = GroupDecision()
        shard.commits.commit(request, out)
        return self._runtime.carry_out(shard, out)

    def commit_in_transaction(self, request: TransactionalCommit) -> Signal[ErrorCode]:
        """TxnOffsetCommit; the signal brings NONE when the offsets are durable, or the write's
        error.

        Durable offsets are pending; a commit marker makes them visible (S-TXN-5). The caller has
        made sure that the partition belongs to the transaction. Raises KafkaError.
        """
        shard = self._runtime.shard_of(request.commit.group_id)
        out = GroupDecision()
        shard.commits.commit_in_transaction(request, out)
        return self._runtime.carry_out(shard, out)

    def marker_refusal(self, partition: int) -> ErrorCode:
        """Refuse markers while the partition loads, because the loader could miss them."""
        if self._runtime.is_loading_partition(partition):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def on_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """A transaction has ended in a partition of the offsets topic (S-TXN-5)."""
        shard = self._runtime.served(partition)
        if shard is not None:
            shard.load_marker(producer_id, commit=commit)

    def fetch_offset(self, group_id: str) -> Callable[[str, int], CommittedOffset | None]:
        """Return a lookup (topic, partition) -> offset of the group. Raises KafkaError."""
        shard = self._runtime.shard_of(group_id)
        topics = shard.offsets.of_group(group_id)

        def find(topic: str, partition: int) -> CommittedOffset | None:
            partitions = topics.get(topic)
            return None if partitions is None else partitions.get(partition)

        return find

    def fetch_all_offsets(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """Return all offsets of the group: topic -> partition -> offset. Raises KafkaError."""
        shard = self._runtime.shard_of(group_id)
        return shard.offsets.of_group(group_id)

    def count_offsets(self, group_id: str, most: int) -> int:
        """The number of offsets of the group, counted up to `most`; 0 if not served here."""
        try:
            shard = self._runtime.shard_of(group_id)
        except KafkaError:
            return 0
        count = 0
        for partitions in shard.offsets.of_group(group_id).values():
            count += len(partitions)
            if count >= most:
                return most
        return count

    def unstable_offsets(self, group_id: str) -> Callable[[str, int], bool]:
        """Return a lookup (topic, partition) -> whether an open transaction holds an offset of it.

        For `require_stable`. Raises KafkaError.
        """
        commits = self._runtime.shard_of(group_id).commits
        return lambda topic, partition: commits.is_pending((group_id, topic, partition))

    async def delete_offsets(
        self, group_id: str, wanted: Iterable[tuple[str, int]]
    ) -> tuple[ErrorCode, dict[tuple[str, int], ErrorCode]]:
        """OffsetDelete: return the code of the write, and one per partition (S-GRP-6).

        Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, among others. To be begun within a
        turn (`in_turn`), so that the offsets are counted even if the client leaves.
        """
        self._require_group_id(group_id)
        shard = self._runtime.shard_of(group_id)
        out = GroupDecision()
        results = shard.commits.delete_offsets(group_id, wanted, out)
        code = await self._runtime.carry_out(shard, out)
        if code is ErrorCode.NONE:
            self._counters.deleted_offsets += out.record_count
        return code, results

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Topics were deleted: delete all offsets committed for them.

        If the offsets topic is one of them, drop all groups: parked requests get NOT_COORDINATOR,
        and groups begin anew in the next offsets topic.
        """
        if OFFSETS_TOPIC in topics:
            self._runtime.topic_deleted()
            return
        for shard in self._runtime.active():
            out = GroupDecision()
            shard.forget_topics(topics, out)
            self._counters.deleted_offsets += out.record_count
            self._runtime.carry_out(shard, out)

    # ---- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups. Raises KafkaError."""
        shard = self._runtime.shard_of(group_id)
        return shard.groups.describe(group_id)

    def count_members(self, group_id: str) -> int:
        """The number of members of the group; 0 if there is no such group, or not here."""
        try:
            group = self._runtime.shard_of(group_id).groups.get(group_id)
        except KafkaError:
            return 0
        return 0 if group is None else group.member_count

    def list_groups(self) -> Iterator[ListedGroup]:
        """ListGroups: all groups of this broker. Raises KafkaError while a partition loads."""
        shards = self._runtime.all_shards()
        return (group for shard in shards for group in shard.groups.list_groups())

    def delete_group(self, group_id: str) -> Signal[ErrorCode]:
        """Delete one group; the signal brings the code of the write. Raises KafkaError."""
        shard = self._runtime.shard_of(group_id)
        out = GroupDecision()
        shard.delete_group(group_id, out)
        self._counters.deleted_offsets += out.record_count - 1
        return self._runtime.carry_out(shard, out)

    # ---- statistics

    def groups_at_a_time(self) -> Iterator[GroupOffsets]:
        """Yield every group as it is at that moment; groups may change between two of them."""
        for shard in self._runtime.active():
            for group_id in dict.fromkeys([*shard.groups.ids(), *shard.offsets.group_ids()]):
                group = shard.groups.get(group_id)
                yield GroupOffsets(
                    group_id=group_id,
                    members=0 if group is None else group.member_count,
                    offsets=shard.offsets.of_group(group_id),
                )

    async def statistics(self) -> GroupStatistics:
        """The numbers of the groups and their work; groups may change while they are counted."""
        states: Counter[str] = Counter({state.value: 0 for state in GroupState})
        offsets = 0
        for shard in self._runtime.active():
            offsets += len(shard.offsets)
            groups = list(shard.groups)
            for at in range(0, len(groups), _GROUPS_AT_ONCE):
                states.update(map(shard.groups.state_of, groups[at : at + _GROUPS_AT_ONCE]))
                await PAUSE
        return GroupStatistics(
            groups=dict(states),
            offsets=offsets,
            counters=self._counters,
            timers=len(self._timers),
            loading=self._runtime.statistics(),
        )
