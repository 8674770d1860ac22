"""Which partition a target of a Fetch names here, for a consumer and for a follower.

A follower has everything below the offset that it fetches. So the lookup records that offset, which
may move the high watermark (`Partition.record_follower_fetch`).

Called by `broker.api.fetch`. Source: `kafka.server.ReplicaManager.readFromLog`,
`kafka.cluster.Partition.fetchRecords`.
"""

from collections.abc import Iterable

from broker.replication.partition import Partition
from broker.replication.read_plan import FetchParams, FetchRead, FetchTarget, Lookup
from broker.replication.replica_manager import ReplicaManager
from protocol.types import ZERO_UUID, TopicPartition
from storage.clock import Clock


class TargetLookup:
    """Finds the partitions of targets; each lookup raises KafkaError with the code to answer."""

    __slots__ = ("_clock", "_find", "_replicas")

    def __init__(self, replica_manager: ReplicaManager, clock: Clock) -> None:
        self._replicas = replica_manager
        self._find = replica_manager.find
        self._clock = clock

    def without_idle(
        self, targets: Iterable[FetchTarget], params: FetchParams, read: FetchRead
    ) -> list[FetchTarget]:
        """The targets of a follower, without those of which nothing has changed since its last
        fetch; of a thousand partitions these are most, and each fetch names them all."""
        now = self._clock.monotonic()
        replica_id, broker_epoch = params.replica_id, params.broker_epoch
        changed = []
        for target in targets:
            partition = target.partition
            if partition is not None and partition.is_idle_for(
                replica_id, target, broker_epoch, now
            ):
                read.served += 1
            else:
                changed.append(target)
        return changed

    def for_params(self, params: FetchParams) -> Lookup:
        """The lookup of a fetch that reads: with the leader, or wherever the client may."""
        return self.of_any if params.any_replica else self.leader

    def of_any(self, target: FetchTarget) -> Partition:
        """As `leader`; a partition that is followed here will do, too."""
        name = target.topic
        if name is None or target.topic_id != ZERO_UUID:
            name = self._replicas.topic_name(target.topic_id)
        found = self._find((name, target.index))
        if (
            found is not None
            and found.is_following
            and target.topic_id in (ZERO_UUID, found.topic_id)
        ):
            target.topic = name
            return found
        return self.leader(target)

    def leader(self, target: FetchTarget) -> Partition:
        """The target's partition, which this broker leads."""
        if target.topic is None or target.topic_id != ZERO_UUID:
            partition = self._replicas.partition_by_id(target.topic_id, target.index)
            target.topic = partition.topic_partition.topic
            return partition
        found = self._find((target.topic, target.index))
        if found is None or found.unavailable:
            raise self._replicas.refusal(TopicPartition(target.topic, target.index))
        return found

    def of_follower(
        self, target: FetchTarget, params: FetchParams, moved: list[Partition]
    ) -> Partition:
        """As `of_any`; also record the follower's offset, if it lies in the log and does not
        diverge. Appends the partition to `moved` if that moves the high watermark."""
        partition = self._in_epoch(target)
        partition.check_leader_epoch(target.leader_epoch)
        data = partition.log
        offset = target.fetch_offset
        if not data.log_start_offset <= offset <= data.log_end_offset:
            return partition
        epoch = target.last_fetched_epoch
        if epoch >= 0 and partition.diverging_epoch(epoch, offset) is not None:
            return partition
        if partition.record_follower_fetch(
            params.replica_id,
            offset,
            knows_epoch=target.leader_epoch >= 0,
            start_offset=target.log_start_offset,
            broker_epoch=params.broker_epoch,
        ):
            moved.append(partition)
        return partition

    def _in_epoch(self, target: FetchTarget) -> Partition:
        """As `of_any`, but if this broker only follows, the leader epoch is compared first: a
        replica that is behind this one must learn that (S-READ-12)."""
        partition = self.of_any(target)
        if partition.is_following:
            partition.check_leader_epoch(target.leader_epoch)  # raises
        return partition
