"""All partitions of this broker: finds them, appends to them, opens and closes them.

`Partition` decides what a request may do with a partition, `read_plan` how much a fetch reads; the
purgatories hold parked requests. This class keeps the table of partitions, and knows the error for
a partition that is not served:

* the metadata does not know it            UNKNOWN_TOPIC_OR_PARTITION (by id: UNKNOWN_TOPIC_ID)
* it lies on a failed log directory        KAFKA_STORAGE_ERROR
* it exists, but another broker leads it   NOT_LEADER_OR_FOLLOWER

A failing disk (`StorageError`) takes its whole log directory offline (S-REC-11): `storage_failed`
reports it to the LogManager, every partition on it answers KAFKA_STORAGE_ERROR from then on, and
its parked requests are woken.

Event loop only. Used by `broker.api`, `broker.coordinator` (through its writers of partitions and
markers) and `broker.cluster` (which says what to lead); made by `broker.components`.
After `kafka.server.ReplicaManager`.
"""

import dataclasses
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.cluster.image import INTERNAL_TOPICS, NO_LEADER, PartitionImage
from broker.replication.batch_opening import BatchOpener
from broker.replication.fetching.statistics import FetchingStatistics
from broker.replication.followers import Followers
from broker.replication.isr import ClusterRules, IsrStatistics
from broker.replication.partition import THREADED_APPEND_BYTES, Partition
from broker.replication.purgatory import Purgatory, PurgatoryStatistics
from broker.replication.shared_reads import SharedReads
from broker.replication.throttle import ReplicationThrottles
from broker.replication.topic_statistics import BrokerTopicStatistics, TopicStatistics
from broker.world.workers import Workers
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.errors import OutOfResources, StorageError, storage_error
from storage.log.opening import Opening
from storage.log.results import AppendInfo, AppendOrigin
from storage.log.validation import LATEST_PRODUCE
from storage.logging_limit import LoggingLimit
from storage.paths import parent_dir
from storage.waits import PAUSE, Signal

if TYPE_CHECKING:
    from broker.cluster.image import MetadataImage
    from config.broker_config import BrokerConfig
    from config.topic_config import TopicConfig
    from storage.log_manager import LogManager

log = logging.getLogger(__name__)

NEVER_THREADED: Final = 1 << 62
"""`threaded_append_bytes` of internal topics: a coordinator's append never goes to a thread."""


class Purgatories(NamedTuple):
    """The purgatories of requests that wait for a partition."""

    produce: Purgatory
    """For requests that wait for the high watermark (acks=all)."""
    fetch: Purgatory
    """For fetches that wait for data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaManagerStatistics:
    """Gauges of `kafka.server:type=ReplicaManager` and the counters of `BrokerTopicMetrics`."""

    partition_count: int
    leader_count: int
    offline_replica_count: int
    under_replicated_partitions: int
    under_min_isr_partition_count: int
    at_min_isr_partition_count: int
    reassigning_partitions: int = 0
    """Partitions led here whose replicas are being changed (`ReassigningPartitions`)."""
    producer_id_count: int
    """Sum over partitions led here of the producers that each remembers."""
    partitions_with_late_transactions_count: int
    all_topics: TopicStatistics
    topics: dict[str, TopicStatistics]
    produce_purgatory: PurgatoryStatistics
    fetch_purgatory: PurgatoryStatistics
    isr: IsrStatistics = field(default_factory=IsrStatistics)
    fetching: FetchingStatistics | None = None
    """The numbers of copying from other brokers; None stand-alone."""


class ReplicaManager:
    """The table of this broker's partitions."""

    def __init__(
        self,
        log_manager: "LogManager",
        image: "MetadataImage",
        clock: Clock,
        config: "BrokerConfig",
        purgatories: Purgatories,
        workers: Workers,
    ) -> None:
        self.log_manager = log_manager
        """All logs of the broker."""
        self._image = image
        self._clock = clock
        self.broker_id: int = config.broker_id
        self._config = config
        self.purgatories = purgatories
        self._workers = workers
        self.opener = BatchOpener(clock.monotonic)
        """Opens produced batches that cannot be checked at a glance."""
        self.shared_reads = SharedReads()
        self._shortages = LoggingLimit(clock)
        self.topic_statistics = BrokerTopicStatistics()
        self._partitions: dict[tuple[str, int], Partition] = {}
        self.find = self._partitions.get
        """(topic, index) -> Partition or None: one dict lookup. The partition may be
        `unavailable`."""
        self.followers: Followers | None = None
        """Copies from leaders; None stand-alone. Set before the first log is opened."""
        self.rules: ClusterRules | None = None
        """The rules for leaders in a cluster; None stand-alone. Set before the first log opens."""
        self.opened: Callable[[Partition], None] | None = None
        """Called with a partition that was opened in a cluster, where the controller chooses it."""
        self.throttles: ReplicationThrottles | None = None
        """The limits of copying to followers and from leaders; None stand-alone."""
        self.isr_changes = IsrStatistics()
        """Counted by `IsrKeeper`."""
        self._repaired: list[Signal[None]] = []
        """Fire when an index is rebuilt."""
        self._checkpointed: dict[TopicPartition, int] | None = None
        """High watermarks as last read or written; None before."""

    # ------------------------------------------------------------------ find

    def partition(self, tp: TopicPartition) -> Partition:
        """Return a partition that this broker leads. Raises KafkaError with the client's code."""
        found = self._partitions.get(tp)
        if found is not None and not found.unavailable:
            return found
        raise self.refusal(tp)

    def replica(self, tp: TopicPartition) -> Partition:
        """Return a partition that this broker leads or follows, for requests about its own log.

        Raises KafkaError. After `ReplicaManager.getPartitionOrError`.
        """
        found = self._partitions.get(tp)
        if found is not None and not found.is_offline:
            return found
        raise self.refusal(tp)

    def refusal(self, tp: TopicPartition) -> KafkaError:
        """Return why this broker cannot serve `tp`."""
        found = self._partitions.get(tp)
        if found is not None and found.unavailable:
            return KafkaError(found.unavailable, f"Partition {tp} is not available.")
        topic = self._image.topic(tp.topic)
        if topic is None or tp.partition not in topic.partitions:
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {tp} does not exist."
            )
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Partition {tp} is not led from here.")

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition:
        """As `partition`, by topic id. Raises KafkaError, UNKNOWN_TOPIC_ID among others."""
        topic = self._image.topic_by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id.")
        found = self.partition(TopicPartition(topic.name, index))
        if found.topic_id != topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{topic.name} has another id here.")
        return found

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of the topic with this id; empty if there is none."""
        topic = self._image.topic_by_id(topic_id)
        return "" if topic is None else topic.name

    def partitions(self) -> Iterator[Partition]:
        """All partitions, offline ones too."""
        return iter(list(self._partitions.values()))

    def high_watermark_of(self, topic: str, index: int) -> int | None:
        """Return the high watermark of a partition led here; None for others."""
        found = self._partitions.get((topic, index))
        return None if found is None or found.unavailable else found.log.high_watermark

    # ------------------------------------------------------------------ append

    def append(
        self,
        tp: TopicPartition,
        records: memoryview | bytes,
        *,
        required_acks: int = -1,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
        request_version: int = LATEST_PRODUCE,
    ) -> AppendInfo:
        """Append for the broker's own coordinators and markers, without waiting; wake fetches.

        Raises KafkaError: COORDINATOR_NOT_AVAILABLE if the append would have to wait, which it
        never has to in an internal topic.
        """
        partition = self.partition(tp)
        if partition.must_wait(len(records)):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{tp} is being written to.")
        try:
            info = partition.append_as_leader_nowait(
                records, required_acks=required_acks, origin=origin, request_version=request_version
            )
        except StorageError as error:
            self.storage_failed(partition, error)
            raise
        assert not isinstance(info, Opening), "batches of the broker's own need no opening"
        self.wake(partition)
        return info

    def wake(self, partition: Partition) -> None:
        """Have parked requests for `partition` check it, after an append or another change."""
        tp = partition.topic_partition
        if not partition.alone:
            self.purgatories.produce.check(tp)
        self.purgatories.fetch.check(tp)

    def records_repaired(self, tp: TopicPartition) -> None:
        """A damaged index of `tp` was rebuilt: wake the requests that wait for its records."""
        repaired, self._repaired = self._repaired, []
        for signal in repaired:
            signal.fire()
        self.purgatories.fetch.check(tp)

    async def wait_repaired(self) -> None:
        """Wait until the next index is rebuilt, of any partition."""
        repaired: Signal[None] = Signal()
        self._repaired.append(repaired)
        await repaired

    # ------------------------------------------------------------------ open and close

    def make_leader(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        image: PartitionImage,
        config: "TopicConfig",
        is_new: bool = False,
    ) -> Partition:
        """Open the log of `tp`, or make it (`is_new`), and lead it as `image` says.

        If this broker is alone in the ISR the high watermark is the log end offset at once;
        otherwise it starts at the checkpointed one. Raises KafkaError (StorageError when the log
        cannot be made).
        """
        partition = self._partitions.get(tp)
        if partition is None or partition.topic_id != topic_id or partition.is_offline:
            partition = self._open(tp, topic_id, image, config, is_new)
        self._unfollow(tp)
        self._start_epoch(partition, image.leader_epoch)
        partition.lead(image)
        self._partitions[tp] = partition
        self.wake(partition)
        return partition

    @property
    def is_clustered(self) -> bool:
        """Whether other brokers may lead."""
        return self.followers is not None

    def make_follower(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        image: PartitionImage,
        config: "TopicConfig",
        is_new: bool = False,
    ) -> Partition:
        """Open the log of `tp`, or make it (`is_new`), and follow the leader of `image`.

        If there is no leader, only the log is opened. Raises KafkaError (StorageError when the log
        cannot be made).
        """
        partition = self._partitions.get(tp)
        is_other = partition is None or partition.topic_id != topic_id or partition.is_offline
        if partition is None or is_other:
            partition = self._open(tp, topic_id, image, config, is_new)
        before = partition.state.image
        followed = partition.is_following and not is_other
        is_same_epoch = followed and image.leader_epoch == before.leader_epoch
        if is_same_epoch and image.partition_epoch < before.partition_epoch:
            return partition
        partition.follow(image)
        self._partitions[tp] = partition
        if not is_same_epoch:
            self._wake_all_of(partition)
        if self.followers is not None:
            if image.leader >= 0:
                self.followers.follow(partition, image.leader, image.leader_epoch)
            else:
                self.followers.unfollow(tp)
        return partition

    def _unfollow(self, tp: TopicPartition) -> None:
        if self.followers is not None:
            self.followers.unfollow(tp)

    def stop_replica(self, tp: TopicPartition, *, delete: bool) -> None:
        """The controller has this broker stop being a replica (StopReplica); `delete` its log, too.

        Raises KafkaError: KAFKA_STORAGE_ERROR if its disk failed.
        """
        found = self._partitions.get(tp)
        if found is not None and found.unavailable == ErrorCode.KAFKA_STORAGE_ERROR:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} is on a failed disk.")
        if delete:
            self.delete_partition(tp)
        elif found is not None:
            self.resign(tp, dataclasses.replace(found.state.image, leader=NO_LEADER))

    def _start_epoch(self, partition: Partition, leader_epoch: int) -> None:
        """Record where this epoch begins. For an empty log the first append does so, which saves a
        sync per partition when a topic is made."""
        data = partition.log
        if data.log_end_offset == data.log_start_offset and data.leader_epochs.is_empty:
            return
        try:
            data.leader_epochs.assign(leader_epoch, data.log_end_offset)
        except OSError as error:
            failure = storage_error(data.dir, error)
            self.storage_failed(partition, failure)
            raise failure from error

    def _open(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        image: PartitionImage,
        config: "TopicConfig",
        is_new: bool,
    ) -> Partition:
        data = self.log_manager.get_or_create_log(tp, topic_id, config, is_new)
        if self._checkpointed is None:
            self._checkpointed = self.log_manager.read_high_watermarks()
        checkpointed = self._checkpointed.get(tp, 0)
        if not is_new and checkpointed > data.high_watermark:
            data.update_high_watermark(checkpointed)
        partition = Partition(
            topic_partition=tp,
            topic_id=topic_id,
            log=data,
            image=image,
            broker_id=self.broker_id,
            statistics=self.topic_statistics.of(tp.topic),
            opener=self.opener,
            threaded_append_bytes=(
                NEVER_THREADED if tp.topic in INTERNAL_TOPICS else THREADED_APPEND_BYTES
            ),
            rules=self.rules,
        )
        if self.opened is not None and self.is_clustered:
            self.opened(partition)
        return partition

    def resign(self, tp: TopicPartition, image: PartitionImage) -> None:
        """Stop serving `tp`: another broker leads it, or none. No error if it is not here.

        Its log stays open.
        """
        self._unfollow(tp)
        found = self._partitions.get(tp)
        if found is not None and found.state.error != ErrorCode.KAFKA_STORAGE_ERROR:
            found.follow(image)
            self._wake_all_of(found)

    def delete_partition(self, tp: TopicPartition) -> None:
        """Stop serving `tp` and delete its log (in the background). No error if it is not here."""
        self._unfollow(tp)
        partition = self._partitions.pop(tp, None)
        if partition is not None:
            partition.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self._wake_all_of(partition)
        if self.log_manager.get_log(tp) is not None:
            self.log_manager.async_delete(tp)

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: drop its counters."""
        self.topic_statistics.forget(topic)

    def _wake_all_of(self, partition: Partition) -> None:
        tp = partition.topic_partition
        self.purgatories.produce.check(tp)
        self.purgatories.fetch.check(tp)

    # ------------------------------------------------------------------ failing disks

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        """The disk of `partition` failed: take its log directory offline (S-REC-11).

        If the process only ran out of descriptors, log it: the next request may succeed.
        """
        if isinstance(error, OutOfResources):
            events = self._shortages.count_event()
            if events:
                log.error(
                    "Could not work on %s: %s (%d times)", partition.topic_partition, error, events
                )
            return
        if partition.unavailable == ErrorCode.KAFKA_STORAGE_ERROR:
            return
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        self._unfollow(partition.topic_partition)
        directory = parent_dir(partition.log.dir)
        cause = error.cause if isinstance(error.cause, OSError) else OSError(str(error))
        self.log_manager.report_failure(directory, cause)
        self.directory_offline(directory)
        self._wake_all_of(partition)

    def directory_offline(self, directory: str) -> None:
        """Mark every partition on `directory` offline and wake its parked requests. Idempotent.

        A listener of `storage.manager.directories.LogDirectories`.
        """
        gone = [
            partition
            for partition in self._partitions.values()
            if not partition.is_offline and parent_dir(partition.log.dir) == directory
        ]
        for partition in gone:
            partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
            self._unfollow(partition.topic_partition)
        for partition in gone:
            self._wake_all_of(partition)

    # ------------------------------------------------------------------ high watermark checkpoint

    async def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint` of every log directory, if a watermark moved.

        Run at a clean stop and every `replica.high.watermark.checkpoint.interval.ms` (S-FL-3).
        """
        now: dict[TopicPartition, int] = {}
        for partition in self.partitions():
            if not partition.is_offline:
                now[partition.topic_partition] = partition.log.high_watermark
            await PAUSE
        if now != self._checkpointed:
            await self.log_manager.checkpoint_high_watermarks()
            self._checkpointed = now

    # ------------------------------------------------------------------ statistics

    async def statistics(self) -> ReplicaManagerStatistics:
        """Gauges and counters."""
        leaders = offline = under_replicated = under_min = at_min = producers = late = 0
        reassigning = 0
        now_ms = self._clock.wall_ms()
        max_timeout_ms = self._config.transaction_max_timeout_ms
        for partition in self.partitions():
            await PAUSE
            if partition.unavailable:
                offline += partition.unavailable == ErrorCode.KAFKA_STORAGE_ERROR
                continue
            leaders += 1
            image = partition.state.image
            reassigning += bool(image.adding_replicas or image.removing_replicas)
            in_sync = len(partition.isr)
            under_replicated += in_sync < partition.replication_factor
            minimum = partition.effective_min_isr
            under_min += in_sync < minimum
            at_min += in_sync == minimum
            state = partition.log.producers
            producers += state.producer_count
            late += state.has_late_transaction(now_ms, max_timeout_ms)
        all_topics, topics = await self.topic_statistics.snapshot()
        return ReplicaManagerStatistics(
            partition_count=len(self._partitions),
            leader_count=leaders,
            offline_replica_count=offline,
            under_replicated_partitions=under_replicated,
            under_min_isr_partition_count=under_min,
            at_min_isr_partition_count=at_min,
            reassigning_partitions=reassigning,
            producer_id_count=producers,
            partitions_with_late_transactions_count=late,
            all_topics=all_topics,
            topics=topics,
            produce_purgatory=self.purgatories.produce.statistics(),
            fetch_purgatory=self.purgatories.fetch.statistics(),
            isr=dataclasses.replace(self.isr_changes),
            fetching=None if self.followers is None else self.followers.statistics(),
        )
