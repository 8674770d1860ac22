"""The group coordinator: carries out what the decisions of `shard.py` say.

It finds the partition a group belongs to, hands the request to that partition's shard, and then
writes records, gives answers and sets timers. All of its methods are synchronous: a request that
has to wait leaves its `Answer` in the group.

* A commit is answered when its records are durable, and visible from then on (S-GRP-4).
* Requests to a partition that is not served here raise KafkaError: COORDINATOR_LOAD_IN_PROGRESS,
  NOT_COORDINATOR; before `startup` and after `shutdown`: COORDINATOR_NOT_AVAILABLE.
* Every batch goes through `PartitionWriter.append`; a commit of many partitions is one batch.
  Tombstones of an expiry run may be very many and are cut into several.

Called by the handlers in `broker/api`, wired by `broker/server`. After `kafka.coordinator.group`.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from broker.coordinator.group.offsets import CommittedOffset
from broker.coordinator.group.outcome import Outcome, Timer
from broker.coordinator.group.rebalance import GroupLimits, Rebalance
from broker.coordinator.group.records import encode_record, subscribed_topics
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.group.state import Answer, GroupState
from broker.coordinator.group.statistics import Counters, GroupStatistics
from broker.coordinator.group.stored import GroupMetadataRecord, GroupRecord, OffsetRecord
from broker.coordinator.group.values import (
    CommitRequest,
    DescribedGroup,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    ListedGroup,
    SyncRequest,
    TransactionalCommit,
)
from broker.coordinator.hashing import coordinator_partition
from broker.coordinator.partition_writer import PartitionWriter
from broker.coordinator.runtime import CoordinatorRuntime
from broker.coordinator.timers import Timers
from broker.deadlines import Deadlines, Handle
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.types import TopicPartition
from storage.clock import Clock

if TYPE_CHECKING:
    from config.broker_config import BrokerConfig

logger = logging.getLogger(__name__)

OFFSETS_TOPIC = "__consumer_offsets"
TOMBSTONES_PER_BATCH = 1_000
"""A batch of tombstones stays far below max.message.bytes, whatever the names."""

EXPIRY_PAUSE_S = 0.02
"""Between the expiry of two partitions: a look at twenty thousand offsets takes that long."""

_RESPONSE_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client is told when the write of its group failed: the cause is not its business."""

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What the coordinator takes from the broker's configuration."""

    limits: GroupLimits = field(default_factory=GroupLimits)
    partition_count: int = 50
    retention_ms: int = 10_080 * 60_000
    retention_check_interval_ms: int = 600_000
    metadata_max_length: int = 4_096
    load_buffer_bytes: int = 5_242_880
    compression: CompressionType = CompressionType.NONE

    @classmethod
    def from_config(cls, config: "BrokerConfig") -> "GroupSettings":
        """From the keys group.*, offsets.* and offset.metadata.max.bytes."""
        return cls(
            limits=GroupLimits(
                min_session_timeout_ms=config.group_min_session_timeout_ms,
                max_session_timeout_ms=config.group_max_session_timeout_ms,
                initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
                max_size=config.group_max_size,
            ),
            partition_count=config.offsets_topic_num_partitions,
            retention_ms=config.offsets_retention_minutes * 60_000,
            retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            metadata_max_length=config.offset_metadata_max_bytes,
            load_buffer_bytes=config.offsets_load_buffer_size,
            compression=CompressionType(config.offsets_topic_compression_codec),
        )


class GroupCoordinator:
    """See the module."""

    def __init__(
        self,
        settings: GroupSettings,
        writer: PartitionWriter,
        deadlines: Deadlines,
        clock: Clock,
        *,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.settings = settings
        self._writer = writer
        self._deadlines = deadlines
        self._clock = clock
        self._timers = Timers(deadlines, clock)
        self._rebalance = Rebalance(
            settings.limits, now_ms=clock.wall_ms, new_id=new_id, read_topics=subscribed_topics
        )
        self._runtime = CoordinatorRuntime[GroupShard](
            OFFSETS_TOPIC,
            writer,
            clock,
            new_shard=self._new_shard,
            on_active=self._on_active,
            slice_bytes=settings.load_buffer_bytes,
        )
        self._counters = Counters()
        self._partition_count = settings.partition_count
        self._partitions: dict[str, int] = {}
        """A cache of `partition_for`."""
        self._expiry: Handle | None = None
        self._open = False

    # ---- life

    def startup(
        self, partitions: Iterable[tuple[int, int]] = (), *, partition_count: int | None = None
    ) -> None:
        """Begin to serve; `partitions` of the offsets topic are led here: (index, leader epoch).

        `partition_count` is what the topic really has, if it is there already: a group stays
        where it is, also after somebody changed offsets.topic.num.partitions.
        """
        self._open = True
        if partition_count is not None:
            self._partition_count = partition_count
            self._partitions.clear()
        self._schedule_expiry()
        for partition, leader_epoch in partitions:
            self.on_elected(partition, leader_epoch)

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """The task that loads partitions, until cancelled."""
        await self._runtime.run(task_status=task_status)

    def shutdown(self) -> None:
        """Serve no more: whoever waits is told COORDINATOR_NOT_AVAILABLE."""
        self._open = False
        if self._expiry is not None:
            self._expiry.cancel()
        for partition, shard in list(self._runtime.active()):
            self._runtime.resign(partition)
            self._close(partition, shard, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._timers.clear()

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition of the offsets topic from now on."""
        replaced = self._runtime.elect(partition, leader_epoch)
        if replaced is not None:
            self._close(partition, replaced, ErrorCode.NOT_COORDINATOR)

    def on_resigned(self, partition: int) -> None:
        """This broker leads it no more: parked requests are told NOT_COORDINATOR."""
        shard = self._runtime.resign(partition)
        if shard is not None:
            self._close(partition, shard, ErrorCode.NOT_COORDINATOR)

    def partition_for(self, group_id: str) -> int:
        """The partition of the offsets topic a group belongs to."""
        partition = self._partitions.get(group_id)
        if partition is None:
            partition = coordinator_partition(group_id, self._partition_count)
            if len(self._partitions) > 10_000:
                self._partitions.clear()
            self._partitions[group_id] = partition
        return partition

    def _new_shard(self, partition: int) -> GroupShard:
        return GroupShard(
            self._rebalance,
            now_ms=self._clock.wall_ms,
            retention_ms=self.settings.retention_ms,
            read_topics=subscribed_topics,
        )

    def _on_active(self, partition: int, shard: GroupShard) -> None:
        out = Outcome()
        shard.on_loaded(out)
        self._carry_out(partition, shard, out)

    def _close(self, partition: int, shard: GroupShard, code: ErrorCode) -> None:
        out = Outcome()
        shard.close(code, out)
        self._carry_out(partition, shard, out)

    def _find(self, group_id: str) -> tuple[int, GroupShard]:
        if not self._open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partition = self.partition_for(group_id)
        return partition, self._runtime.shard(partition)

    @staticmethod
    def _require_group_id(group_id: str) -> None:
        """Membership needs a name; offsets may be kept under the empty one, as ever."""
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)

    # ---- membership

    def join(self, request: JoinRequest, answer: Answer) -> None:
        """JoinGroup; `answer` gets the JoinReply. Raises KafkaError."""
        self._require_group_id(request.group_id)
        limits = self.settings.limits
        if not (
            limits.min_session_timeout_ms
            <= request.session_timeout_ms
            <= limits.max_session_timeout_ms
        ):
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        partition, shard = self._find(request.group_id)
        out = Outcome()
        shard.join(request, answer, out)
        self._carry_out(partition, shard, out)

    def sync(self, request: SyncRequest, answer: Answer) -> None:
        """SyncGroup; `answer` gets the SyncReply. Raises KafkaError."""
        self._require_group_id(request.group_id)
        partition, shard = self._find(request.group_id)
        out = Outcome()
        shard.sync(request, answer, out)
        self._carry_out(partition, shard, out)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat. While the group loads nobody can know better: NONE. Raises KafkaError."""
        self._require_group_id(group_id)
        try:
            partition, shard = self._find(group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE
            raise
        out = Outcome()
        code = shard.heartbeat(group_id, member_id, instance_id, generation, out)
        self._carry_out(partition, shard, out)
        return code

    def leave(self, group_id: str, leaving: tuple[LeavingMember, ...]) -> LeaveReply:
        """LeaveGroup. Raises KafkaError."""
        self._require_group_id(group_id)
        partition, shard = self._find(group_id)
        out = Outcome()
        reply = shard.leave(group_id, leaving, out)
        self._carry_out(partition, shard, out)
        return reply

    # ---- offsets

    def commit_offsets(self, request: CommitRequest, done: Callable[[ErrorCode], None]) -> None:
        """OffsetCommit: `done` when the offsets are durable, or with why not. Raises KafkaError.

        The caller has taken out what cannot be committed (unknown topics, metadata too large).
        """
        partition, shard = self._find(request.group_id)
        out = Outcome()
        records = shard.commit(request, out)
        self._carry_out(partition, shard, out)
        if not records:
            done(ErrorCode.NONE)
            return
        keys = [record.key for record in records]
        offsets = shard.offsets
        offsets.begin_write(keys)

        def written(code: ErrorCode, first_offset: int) -> None:
            offsets.end_write(keys)
            if code is ErrorCode.NONE:
                self._counters.commits += len(records)
                self._replay(partition, shard, records, first_offset)
            else:
                self._counters.commit_failures += len(records)
                code = (
                    ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                    if code in _TOO_LARGE
                    else _RESPONSE_CODES.get(code, code)
                )
            done(code)

        self._append(partition, records, written)

    def commit_in_transaction(
        self, request: TransactionalCommit, done: Callable[[ErrorCode], None]
    ) -> None:
        """TxnOffsetCommit: `done` when the offsets are durable, or with why not. Raises KafkaError.

        They are pending from now on, and are shown when the transaction's marker comes (S-TXN-5).
        The caller has made sure that the partition belongs to the transaction.
        """
        partition, shard = self._find(request.commit.group_id)
        records = shard.commit_in_transaction(request.commit)
        if not records:
            done(ErrorCode.NONE)
            return
        pending = [(one.key, one.committed) for one in records if one.committed is not None]
        producer_id = request.producer_id
        for key, committed in pending:
            shard.put_pending(producer_id, key, committed)

        def written(code: ErrorCode, first_offset: int) -> None:
            if code is ErrorCode.NONE:
                self._counters.transactional_commits += len(records)
                for at, (_, committed) in enumerate(pending):
                    committed.record_offset = first_offset + at
            else:
                self._counters.commit_failures += len(records)
                for key, committed in pending:
                    shard.offsets.drop_pending(producer_id, key, committed)
                code = _RESPONSE_CODES.get(code, code)
            done(code)

        batch = self._batch(
            records,
            producer_id=producer_id,
            producer_epoch=request.producer_epoch,
            transactional=True,
        )
        self._writer.append(TopicPartition(OFFSETS_TOPIC, partition), batch, written)

    def marker_refusal(self, partition: int) -> ErrorCode:
        """While a partition is being loaded the end of a transaction would be missed: it waits."""
        if self._runtime.is_loading_partition(partition):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def on_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """A transaction has ended in a partition of the offsets topic (S-TXN-5)."""
        shard = self._runtime.served(partition)
        if shard is not None:
            shard.load_marker(producer_id, commit=commit)

    def fetch_offset(self, group_id: str) -> Callable[[str, int], CommittedOffset | None]:
        """(topic, partition) -> the committed offset of the group. Raises KafkaError."""
        _, shard = self._find(group_id)
        topics = shard.offsets.of_group(group_id)

        def find(topic: str, partition: int) -> CommittedOffset | None:
            partitions = topics.get(topic)
            return None if partitions is None else partitions.get(partition)

        return find

    def fetch_all_offsets(self, group_id: str) -> dict[str, dict[int, CommittedOffset]]:
        """topic -> partition -> offset, of the whole group. Raises KafkaError."""
        _, shard = self._find(group_id)
        return shard.offsets.of_group(group_id)

    def is_unstable(self, group_id: str, topic: str, partition: int) -> bool:
        """An open transaction holds an offset of the partition (require_stable)."""
        _, shard = self._find(group_id)
        return shard.offsets.is_pending((group_id, topic, partition))

    def delete_offsets(
        self,
        group_id: str,
        wanted: Iterable[tuple[str, int]],
        done: Callable[[ErrorCode, dict[tuple[str, int], ErrorCode]], None],
    ) -> None:
        """OffsetDelete: `done` gets the outcome of the write and per partition. Raises KafkaError.

        GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP are raised (S-GRP-6).
        """
        self._require_group_id(group_id)
        partition, shard = self._find(group_id)
        results, tombstones = shard.delete_offsets(group_id, wanted)
        if not tombstones:
            done(ErrorCode.NONE, results)
            return

        def written(code: ErrorCode, first_offset: int) -> None:
            if code is ErrorCode.NONE:
                self._counters.deleted_offsets += len(tombstones)
                self._replay(partition, shard, tombstones, first_offset)
            done(_RESPONSE_CODES.get(code, code), results)

        self._append(partition, tombstones, written)

    def on_topics_deleted(self, topics: Collection[str]) -> None:
        """Topics are gone: so are all offsets committed for them."""
        for partition, shard in self._runtime.active():
            records = shard.forget_topics(topics)
            self._counters.deleted_offsets += len(records)
            self._write_tombstones(partition, shard, records)

    # ---- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups. Raises KafkaError."""
        _, shard = self._find(group_id)
        return shard.describe(group_id)

    def list_groups(self) -> list[ListedGroup]:
        """ListGroups: all that this broker coordinates. Raises KafkaError while any loads."""
        if not self._open:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self._runtime.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [group for _, shard in self._runtime.active() for group in shard.list_groups()]

    def delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        """DeleteGroups, one of them: `done` when the tombstones are durable. Raises KafkaError."""
        partition, shard = self._find(group_id)
        out = Outcome()
        records = shard.delete_group(group_id, out)
        self._carry_out(partition, shard, out)
        self._counters.deleted_offsets += len(records) - 1
        self._write_tombstones(partition, shard, records, done)

    # ---- carrying out

    def _carry_out(self, partition: int, shard: GroupShard, out: Outcome) -> None:
        for key, timer in out.timers.items():
            if timer is None:
                self._timers.cancel(key)
            else:
                self._timers.schedule(
                    key, timer.delay_ms / 1000, partial(self._on_timer, partition, shard, timer)
                )
        for reason in out.rebalances:
            counts = self._counters.rebalances
            counts[reason.value] = counts.get(reason.value, 0) + 1
        self._counters.completed_rebalances += out.completed_rebalances
        for answer, reply in out.answers:
            answer(reply)
        if out.records:
            self._append(partition, out.records, partial(self._written, partition, shard, out))

    def _written(
        self, partition: int, shard: GroupShard, out: Outcome, code: ErrorCode, offset: int
    ) -> None:
        if code is not ErrorCode.NONE:
            logger.warning("Writing group metadata to %s-%d: %r", OFFSETS_TOPIC, partition, code)
        if out.after is not None:
            then = Outcome()
            out.after(_RESPONSE_CODES.get(code, code), then)
            self._carry_out(partition, shard, then)

    def _on_timer(self, partition: int, shard: GroupShard, timer: Timer) -> None:
        if self._runtime.is_current(partition, shard):
            out = Outcome()
            shard.on_timer(timer, out)
            self._carry_out(partition, shard, out)

    def _append(
        self,
        partition: int,
        records: Sequence[GroupRecord],
        done: Callable[[ErrorCode, int], None],
    ) -> None:
        self._writer.append(TopicPartition(OFFSETS_TOPIC, partition), self._batch(records), done)

    def _batch(self, records: Sequence[GroupRecord], **producer: Any) -> bytes:
        now = self._clock.wall_ms()
        return build_batch(
            [(now, key, value, ()) for key, value in map(encode_record, records)],
            codec=self.settings.compression,
            **producer,
        )

    def _replay(
        self, partition: int, shard: GroupShard, records: Sequence[GroupRecord], first_offset: int
    ) -> None:
        if self._runtime.is_current(partition, shard):
            for at, record in enumerate(records):
                shard.replay(record, first_offset + at)

    def _write_tombstones(
        self,
        partition: int,
        shard: GroupShard,
        records: Sequence[GroupRecord],
        done: Callable[[ErrorCode], None] = lambda code: None,
    ) -> None:
        """Write tombstones in batches; a group's own comes after those of its offsets.

        `done` gets the first error, or NONE.
        """
        starts = list(range(0, len(records), TOMBSTONES_PER_BATCH))
        left = len(starts)
        first_error = ErrorCode.NONE

        def written(batch: Sequence[GroupRecord], code: ErrorCode, first_offset: int) -> None:
            nonlocal left, first_error
            left -= 1
            if code is ErrorCode.NONE:
                self._replay(partition, shard, batch, first_offset)
            else:
                first_error = first_error or code
                for record in batch:
                    if isinstance(record, GroupMetadataRecord):
                        shard.undo_delete(record.group_id)
            if not left:
                done(_RESPONSE_CODES.get(first_error, first_error))

        for start in starts:
            batch = records[start : start + TOMBSTONES_PER_BATCH]
            self._append(partition, batch, partial(written, batch))

    # ---- expiry

    def _schedule_expiry(self) -> None:
        self._expiry = self._deadlines.schedule(
            self.settings.retention_check_interval_ms / 1000, self._expire
        )

    def _expire(self) -> None:
        """One partition after the other, so that the loop has its turn in between."""
        self._schedule_expiry()
        for turn, (partition, shard) in enumerate(self._runtime.active()):
            self._deadlines.schedule(
                turn * EXPIRY_PAUSE_S, partial(self._expire_partition, partition, shard)
            )

    def _expire_partition(self, partition: int, shard: GroupShard) -> None:
        if not self._runtime.is_current(partition, shard):
            return
        out = Outcome()
        records = shard.expire(out)
        self._carry_out(partition, shard, out)
        self._counters.expired_offsets += sum(isinstance(one, OffsetRecord) for one in records)
        if records:
            logger.info("%s-%d: %d records expired", OFFSETS_TOPIC, partition, len(records))
        self._write_tombstones(partition, shard, records)

    # ---- looking

    def statistics(self) -> GroupStatistics:
        """A snapshot."""
        states = {state.value: 0 for state in GroupState}
        offsets = 0
        for _, shard in self._runtime.active():
            offsets += len(shard.offsets)
            for group in shard.groups():
                states[group.state.value] += 1
        counters = self._counters
        return GroupStatistics(
            groups=states,
            offsets=offsets,
            commits=counters.commits,
            transactional_commits=counters.transactional_commits,
            commit_failures=counters.commit_failures,
            expired_offsets=counters.expired_offsets,
            deleted_offsets=counters.deleted_offsets,
            rebalances=dict(counters.rebalances),
            completed_rebalances=counters.completed_rebalances,
            timers=len(self._timers),
            loading=self._runtime.statistics(),
        )
