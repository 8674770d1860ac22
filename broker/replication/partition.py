"""One partition as its leader serves it: its `Log`, replicas, appends, reads and high watermark.

Rules

* Consumers see offsets below the high watermark. It is the least log end offset of the in-sync
  replicas and of those about to join them (`isr`, `follower_progress`); the only replica moves it
  with every append. In a cluster it stands still while fewer replicas than `min.insync.replicas`
  are in sync. A follower's is what its leader says (`copying`).
* A batch that cannot be checked at a glance is opened before its append (`batch_opening`), without
  the lock, so that it delays no other append. Its offsets are assigned at its append.
* An append is a plain function call and cannot be interrupted. Batches of `threaded_append_bytes`
  and more are checked and written in one thread hop, under this partition's lock, so that a
  dirty-page stall does not block the event loop. Meanwhile nothing else may append to, truncate or
  roll the log: `appending` is non-zero, and other appends queue on the lock, as coroutines. Appends
  to internal topics are never threaded, so that the coordinators can always append at once.
* A partition that cannot be served has the reason in `unavailable`; a caller that keeps a
  `Partition` over time (a fetch session, a parked fetch) checks it before each use.
* Every refusal is a `KafkaError` (or a `RecordsError` about the bytes): see `failures`.

Called by `replica_manager`, `read_plan`, the delayed operations and the handlers in `broker.api`.
After `kafka.cluster.Partition`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from broker.cluster.image import PartitionImage
from broker.replication.batch_opening import BatchOpener
from broker.replication.follower_progress import FollowerProgress
from broker.replication.isr import (
    ClusterRules,
    IsrAnswer,
    IsrOutcome,
    expansion,
    settled,
    shrinking,
)
from broker.replication.partition_state import (
    PartitionState,
    PendingIsr,
    Role,
    following,
    leading,
)
from broker.replication.shared_reads import LastRead
from broker.replication.topic_statistics import TopicStatistics
from broker.replication.truncation import (
    EpochEnd,
    divergence,
    end_of_epoch,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.types import (
    TopicPartition,
)
from storage.epochs import UNDEFINED_EPOCH
from storage.log.opening import Opened, Opening
from storage.log.results import (
    AppendInfo,
    AppendOrigin,
    FetchIsolation,
    ReadInfo,
    StartOffsetReason,
)
from storage.log.validation import LATEST_PRODUCE
from storage.waits import Lock, call

if TYPE_CHECKING:
    from storage.log.log import Log

THREADED_APPEND_BYTES: Final = 1280 * 1024
"""From so many bytes on a thread checks and writes a batch. Half a millisecond of the loop's is
less than two turns of a thread cost: batches of a megabyte are written 1.5 times as fast here."""

ALL_IN_SYNC: Final = -1
"""Produce's `acks=all`."""
_LOG_IS_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR)


class Asked(Protocol):
    """A follower's position in a session: the part of `read_plan.FetchTarget` used here."""

    fetch_offset: int
    leader_epoch: int
    log_start_offset: int
    known_high_watermark: int
    known_log_start_offset: int


def _admit() -> None:
    """The default check of an append when its turn comes: none."""


class Partition:
    """A partition with a log here, whether this broker leads it, follows or cannot serve it.

    Attributes are public to read. Methods change them, and `append_order` changes `appending`.
    """

    __slots__ = (
        "_followers",
        "_rules",
        "alone",
        "append_lock",
        "appended_bytes",
        "appending",
        "broker_id",
        "epoch_start_offset",
        "last_read",
        "leader_epoch",
        "log",
        "opener",
        "state",
        "statistics",
        "threaded_append_bytes",
        "topic_id",
        "topic_partition",
        "unavailable",
    )

    def __init__(
        self,
        *,
        topic_partition: TopicPartition,
        topic_id: bytes,
        log: "Log",
        image: PartitionImage,
        broker_id: int,
        statistics: TopicStatistics,
        opener: BatchOpener | None = None,
        threaded_append_bytes: int = THREADED_APPEND_BYTES,
        rules: ClusterRules | None = None,
    ) -> None:
        """`rules` hold in a cluster; None stand-alone."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.broker_id = broker_id
        self.statistics = statistics
        self.opener = opener or BatchOpener()
        self.threaded_append_bytes = threaded_append_bytes
        self.appended_bytes = 0
        """Bytes appended since it was opened, by which parked fetches measure what arrived."""
        self.last_read = LastRead()
        self.appending = 0
        """Appends that hold or wait for the lock."""
        self.append_lock = Lock()
        """Appends in a thread hold it, and other appends queue on it."""
        self._followers: FollowerProgress | None = None
        self._rules = rules
        self.epoch_start_offset = log.log_end_offset
        """Log end offset when this leader epoch began."""
        self._swap(leading(image))

    def _swap(self, state: PartitionState) -> None:
        """Replace the state; the only method that does."""
        self.state = state
        # Copied from `state`, because every request reads them.
        self.leader_epoch = state.image.leader_epoch
        self.unavailable = state.error
        """Why it cannot be served; NONE (falsy) while this broker leads it."""
        self.alone = state.image.replicas == (self.broker_id,)
        """Whether there are no other replicas: then the high watermark is the log end offset."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """Broker ids, the preferred leader first."""
        return self.state.image.replicas

    @property
    def replication_factor(self) -> int:
        """Replicas without those that a reassignment is still adding (`Partition.isUnderReplicated`
        of Kafka asks for no more in the ISR)."""
        image = self.state.image
        if not image.adding_replicas:
            return len(image.replicas)
        return sum(replica not in image.adding_replicas for replica in image.replicas)

    @property
    def isr(self) -> tuple[int, ...]:
        """The replicas that are in sync: their log ends bound the high watermark."""
        return self.state.image.isr

    def __repr__(self) -> str:
        state = self.unavailable.name if self.unavailable else "leader"
        return f"Partition({self.topic_partition}, epoch={self.leader_epoch}, {state})"

    # ------------------------------------------------------------------ leadership

    def lead(self, image: PartitionImage) -> bool:
        """Lead as the image says; return whether the high watermark moved.

        Nothing changes if this leader knows a newer state of the same epoch, from the answer to a
        proposal of its own (`isr_answered`). Not while a follower's append is under way.
        """
        state, followers = self.state, self._followers
        is_new_epoch = image.leader_epoch != self.leader_epoch
        led_before = state.role is Role.LEADER and followers is not None
        if not is_new_epoch and led_before and image.partition_epoch < state.image.partition_epoch:
            return False
        end = self.log.log_end_offset
        if is_new_epoch:
            self.epoch_start_offset = end
        self._swap(leading(image))
        if self.alone:
            self._followers = None
        else:
            others = (replica for replica in image.replicas if replica != self.broker_id)
            self._followers = progress = FollowerProgress(others, followers)
            if is_new_epoch or not led_before:
                now = 0.0 if self._rules is None else self._rules.monotonic()
                progress.restart(image.isr, leader_end=end, now=now, new_leader=not led_before)
        return self.maybe_increment_high_watermark()

    def follow(self, image: PartitionImage) -> None:
        """Another broker leads from now on, or none: answer NOT_LEADER_OR_FOLLOWER."""
        self._swap(following(image))
        self._followers = None

    @property
    def is_offline(self) -> bool:
        """Whether it was deleted, or its disk failed: then its log must not be touched."""
        return self.state.role is Role.OFFLINE

    @property
    def is_following(self) -> bool:
        """Whether it is a replica that another broker leads, or none."""
        return self.state.role is Role.FOLLOWER

    def close(self, reason: ErrorCode) -> None:
        """Stop serving; requests get `reason` from now on."""
        self._swap(self.state.offline(reason))

    def check_leader_epoch(
        self, current_leader_epoch: int, *, follower_answers: bool = False
    ) -> None:
        """Check the leader epoch that a client knows (S-READ-12); -1 means it knows none.

        Raises KafkaError: FENCED_LEADER_EPOCH if the client is behind, UNKNOWN_LEADER_EPOCH if this
        broker is, or why the partition is not served; a follower does not serve it, unless
        `follower_answers`. After `Partition.localLogWithEpochOrThrow`.
        """
        if not self.is_following:
            self._expect_served()
        self.compare_leader_epoch(current_leader_epoch)
        if not follower_answers:
            self._expect_served()

    def compare_leader_epoch(self, current_leader_epoch: int) -> None:
        """Check the leader epoch that a client knows, in any role of this broker.

        Raises KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
        """
        if current_leader_epoch == self.leader_epoch or current_leader_epoch == UNDEFINED_EPOCH:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"Leader epoch {current_leader_epoch} of {self.topic_partition} is older than the "
                f"current one, {self.leader_epoch}.",
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"Leader epoch {current_leader_epoch} of {self.topic_partition} is newer than the "
            f"current one, {self.leader_epoch}.",
        )

    # ------------------------------------------------------------------ append

    def must_wait(self, size: int) -> bool:
        """Whether an append of `size` bytes goes to a thread, or must queue behind another."""
        return self.appending > 0 or size >= self.threaded_append_bytes

    def append_as_leader_nowait(
        self,
        records: memoryview | bytes,
        *,
        required_acks: int = 1,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
        opened: Opened | None = None,
    ) -> AppendInfo | Opening:
        """Append one batch now, whatever its size. Not while `appending`.

        Returns the `Opening`, with nothing changed, if the batch must be opened first; `opened` is
        the result of that. Raises as `append_as_leader`. The caller wakes parked requests
        afterwards (`ReplicaManager.wake`).
        """
        if self.unavailable:
            self._expect_served()  # raises
        if required_acks == ALL_IN_SYNC and not self.alone:
            self.require_min_isr()
        info = self.log.append_if_light(
            records,
            leader_epoch=self.leader_epoch,
            origin=origin,
            request_version=request_version,
            opened=opened,
        )
        if not isinstance(info, Opening):
            self.appended(info)
        return info

    async def append_as_leader(
        self,
        records: memoryview | bytes,
        *,
        required_acks: int = 1,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        request_version: int = LATEST_PRODUCE,
        admit: Callable[[], None] = _admit,
        opening: Opening | None = None,
    ) -> AppendInfo:
        """Append one batch: opened first if it must be, in its turn, in a thread if it is big.

        `opening`: it is known that the batch must be opened. `admit` is called when its turn comes,
        and may raise KafkaError. Ends early only before that; an append that has begun is finished.
        The caller wakes parked requests afterwards (`ReplicaManager.wake`). Raises KafkaError
        (NOT_ENOUGH_REPLICAS before anything is written, S-APP-8) and RecordsError.
        """
        opened = None
        while True:
            if opening is not None:
                opened = await self.opener.open(opening)
            if self.must_wait(len(records)):
                self.appending += 1
                try:
                    async with self.append_lock:
                        admit()
                        info = await self._append_in_turn(
                            records, required_acks, origin, request_version, opened
                        )
                finally:
                    self.appending -= 1
            else:
                admit()
                info = self.append_as_leader_nowait(
                    records,
                    required_acks=required_acks,
                    origin=origin,
                    request_version=request_version,
                    opened=opened,
                )
            if not isinstance(info, Opening):
                return info
            opening = info

    async def _append_in_turn(
        self,
        records: memoryview | bytes,
        required_acks: int,
        origin: AppendOrigin,
        request_version: int,
        opened: Opened | None,
    ) -> AppendInfo | Opening:
        """Append with the lock held; a thread does the CRC and the write of a big batch."""
        self._expect_served()
        if required_acks == ALL_IN_SYNC:
            self.require_min_isr()
        log = self.log
        pending = log.appender.begin_append(
            records,
            leader_epoch=self.leader_epoch,
            origin=origin,
            request_version=request_version,
            opened=opened,
        )
        if isinstance(pending, Opening):
            return pending
        if pending.size < self.threaded_append_bytes:
            pending.write()
        else:
            await call(pending.write)
        if self.unavailable in _LOG_IS_GONE:
            # The partition was deleted, or its disk failed, while the thread was writing: do not
            # complete the append, which would touch files that are gone.
            self._expect_served()
        info = log.appender.complete_append(pending)
        self.appended(info)
        return info

    def _expect_served(self) -> None:
        if self.unavailable:
            raise KafkaError(self.unavailable, f"{self.topic_partition} is not served here.")

    def replace_log(self, log: "Log") -> None:
        """Use `log`, which holds the same records, after a move. Not while anything appends."""
        self.log = log

    def appended(self, info: AppendInfo) -> None:
        """A batch was appended to the log: update the high watermark and the counters."""
        log = self.log
        if self.alone:
            log.update_high_watermark(log.log_end_offset)
        else:
            self.maybe_increment_high_watermark()
        if not info.duplicate:
            self.appended_bytes += info.valid_bytes
            statistics = self.statistics
            statistics.messages_in += info.record_count
            statistics.bytes_in += info.valid_bytes

    def require_min_isr(self) -> None:
        """Raises KafkaError NOT_ENOUGH_REPLICAS (S-APP-8)."""
        wanted = self.effective_min_isr
        if len(self.isr) < wanted:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The in-sync replicas {list(self.isr)} of {self.topic_partition} are fewer than "
                f"min.insync.replicas={wanted}.",
            )

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but never more than there are replicas (KIP-966's clamp)."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    # ------------------------------------------------------------------ watermarks

    def maybe_increment_high_watermark(self) -> bool:
        """Move the high watermark to the least log end offset of the ISR; return if it moved."""
        log = self.log
        lowest = log.log_end_offset
        followers = self._followers
        if followers is not None:
            rules, state = self._rules, self.state
            if rules is not None and len(state.image.isr) < self.effective_min_isr:
                return False
            lowest = followers.lowest(state.maximal_isr, lowest, rules)
        if lowest <= log.high_watermark:
            return False
        return log.update_high_watermark(lowest)

    def record_follower_fetch(
        self,
        replica_id: int,
        fetch_offset: int,
        *,
        knows_epoch: bool,
        start_offset: int = -1,
        broker_epoch: int = -1,
    ) -> bool:
        """Note that a follower has everything below `fetch_offset`; return if a watermark moved.

        It is proposed for the ISR if it has caught up. Raises KafkaError for a broker that is no
        replica: UNKNOWN_LEADER_EPOCH if it sent the current epoch (this broker may still learn of
        it), else NOT_LEADER_OR_FOLLOWER; after either it retries.
        """
        followers = self._followers
        follower = None if followers is None else followers.get(replica_id)
        if follower is None:
            code = (
                ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
            raise KafkaError(code, f"Broker {replica_id} is no replica of {self.topic_partition}.")
        rules = self._rules
        before, started = follower.end_offset, follower.start_offset
        now = 0.0 if rules is None else rules.monotonic()
        follower.note(fetch_offset, start_offset, self.log.log_end_offset, now, broker_epoch)
        if rules is not None and replica_id not in self.state.image.isr:
            found = expansion(
                self.state,
                replica_id,
                end_offset=fetch_offset,
                high_watermark=self.log.high_watermark,
                epoch_start=self.epoch_start_offset,
                may_join=rules.may_join,
            )
            if isinstance(found, PendingIsr):
                self._propose(found)
        moved = before != fetch_offset and self.maybe_increment_high_watermark()
        return moved or start_offset > started >= 0

    def is_idle_for(self, replica_id: int, target: Asked, broker_epoch: int, now: float) -> bool:
        """Whether a follower in sync fetches at the log's end, where it was before, and has nothing
        to learn; then its fetch is noted. Else it is to be looked at closely."""
        offset, offsets = target.fetch_offset, self.log.offsets
        if (
            offsets.end != offset
            or target.leader_epoch != self.leader_epoch
            or offsets.high_watermark != target.known_high_watermark
            or offsets.start != target.known_log_start_offset
            or self.unavailable
            or self._followers is None
        ):
            return False
        follower = self._followers.get(replica_id)
        if (
            follower is None
            or follower.end_offset != offset
            or follower.leader_end != offset
            or follower.start_offset != target.log_start_offset
            or follower.broker_epoch != broker_epoch
            or replica_id not in self.state.image.isr
        ):
            return False
        follower.fetched_at = follower.caught_up_at = now
        return True

    def shrink_isr(self) -> bool:
        """Propose an ISR without the replicas that lag; return whether there are any."""
        followers, rules = self._followers, self._rules
        if followers is None or rules is None or self.unavailable:
            return False
        state = self.state
        lagging = followers.lagging(state.image.isr, self.log.log_end_offset, rules)
        if not lagging:
            return False
        found = shrinking(state, lagging)
        if not isinstance(found, PendingIsr):
            return False
        self._propose(found)
        return True

    def _propose(self, isr: PendingIsr) -> None:
        assert self._rules is not None
        self._swap(replace(self.state, pending=isr))
        self._rules.alter_isr(self, isr)

    def isr_answered(self, sent: PendingIsr, answer: IsrAnswer) -> tuple[IsrOutcome, bool]:
        """Take over what the controller says to a proposal; return what that means, and whether
        the high watermark moved."""
        state, outcome = settled(self.state, sent, answer)
        if state is self.state:
            return outcome, False
        self._swap(state)
        return outcome, self.maybe_increment_high_watermark()

    @property
    def followers(self) -> FollowerProgress | None:
        """The other replicas, while this broker leads and is not the only one."""
        return self._followers

    def reached(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Return whether an acks=all append below `required_offset` is settled, and its code.

        (True, NOT_ENOUGH_REPLICAS_AFTER_APPEND) if it is replicated but the ISR shrank below the
        minimum; (True, error) if the partition is no longer served.
        """
        if self.unavailable:
            return True, self.unavailable
        if self.log.high_watermark < required_offset:
            return False, ErrorCode.NONE
        if len(self.state.maximal_isr) < self.effective_min_isr:
            return True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, ErrorCode.NONE

    # ------------------------------------------------------------------ read

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        *,
        min_one_message: bool = True,
        current_leader_epoch: int = UNDEFINED_EPOCH,
    ) -> ReadInfo:
        """Read batches from the one that holds `offset`. Raises KafkaError (OffsetOutOfRange…)."""
        self.check_leader_epoch(current_leader_epoch)
        return self.log.read(offset, max_bytes, isolation, min_one_message)

    def diverging_epoch(self, last_fetched_epoch: int, offset: int) -> EpochEnd | None:
        """Return (epoch, end offset) after which a replica's log differs from this one, or None.

        Raises KafkaError OFFSET_OUT_OF_RANGE if its epoch is older than all known ones (KIP-595).
        """
        answer = self.end_offset_for_epoch(last_fetched_epoch)
        return divergence(answer, last_fetched_epoch, offset)

    # ------------------------------------------------------------------ offsets

    def end_offset_for_epoch(
        self, leader_epoch: int, current_leader_epoch: int = UNDEFINED_EPOCH
    ) -> EpochEnd:
        """OffsetForLeaderEpoch (S-READ-12): return (largest epoch not above it, its end offset).

        (-1, -1) if none is known. Raises KafkaError for a wrong `current_leader_epoch`.
        """
        self.check_leader_epoch(current_leader_epoch)
        return end_of_epoch(self.log, self.leader_epoch, leader_epoch)

    @property
    def low_watermark(self) -> int:
        """The least log start of all live replicas, while this broker leads."""
        lowest = self.log.log_start_offset
        followers, rules = self._followers, self._rules
        if followers is not None and rules is not None:
            for replica, follower in followers.items():
                if follower.start_offset < lowest and rules.may_join(replica):
                    lowest = follower.start_offset
        return lowest

    def delete_records(self, offset: int) -> int:
        """Delete everything below `offset` (-1: the high watermark); return the log start offset.

        Raises KafkaError: POLICY_VIOLATION unless `cleanup.policy` has delete, OFFSET_OUT_OF_RANGE
        above the high watermark (S-RET-6).
        """
        self.check_leader_epoch(UNDEFINED_EPOCH)
        log = self.log
        if "delete" not in log.config.cleanup_policy:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.topic_partition} can not be deleted due to the "
                "configured policy",
            )
        high_watermark = log.high_watermark
        target = high_watermark if offset == -1 else offset
        if target < 0 or target > high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {target} of partition "
                f"{self.topic_partition} since it is larger than the high watermark "
                f"{high_watermark}",
            )
        log.maybe_increment_log_start_offset(target, StartOffsetReason.CLIENT_RECORD_DELETION)
        return log.log_start_offset
