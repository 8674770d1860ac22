"""What this broker leads: elections at start, and the logs behind them.

Stand-alone, a partition is led by the broker that has a replica of it. Each start is an election,
so leader epochs grow; and because another broker may have led the logs meanwhile, they grow above
what the logs hold. A partition whose log cannot be opened (failed disk) has no leader; the rest
serves on. After Kafka's `PartitionStateMachine`.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import trio

from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.errors import OutOfResources, StorageError

log = logging.getLogger(__name__)


class Replicas(Protocol):
    """What the controller tells `broker.replication.replica_manager.ReplicaManager`."""

    def make_leader(
        self,
        tp: TopicPartition,
        topic_id: bytes,
        leader_epoch: int,
        config: TopicConfig,
        is_new: bool = False,
    ) -> Any:
        """Open or make the log and serve the partition. Raises KafkaError."""
        ...

    def delete_partition(self, tp: TopicPartition) -> None:
        """Stop serving it and delete its log; no error when it is not here."""
        ...

    def forget_topic(self, topic: str) -> None:
        """Drop the counters of a deleted topic."""
        ...


class LogEpochs(Protocol):
    """What is asked of `storage.log_manager.LogManager`."""

    @property
    def takes_new_logs(self) -> bool:
        """Not every log directory is cordoned."""
        ...

    def latest_epoch(self, tp: TopicPartition) -> int | None:
        """The last leader epoch in the partition's log; None for an empty or missing log."""
        ...

    def dir_of(self, tp: TopicPartition) -> str | None:
        """The log directory that holds the partition, whether it is served or not."""
        ...


def elected(topic: TopicImage, broker_id: int) -> TopicImage:
    """The topic after a start: every leader is elected anew, the epoch grows, as Kafka's does."""
    return replace(
        topic,
        partitions={
            index: replace(
                partition,
                leader=broker_id if broker_id in partition.replicas else NO_LEADER,
                leader_epoch=partition.leader_epoch + 1,
                isr=(broker_id,) if broker_id in partition.replicas else (),
            )
            for index, partition in topic.partitions.items()
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionStatistics:
    """What the elections of a start have changed."""

    isr_shrinks: int = 0
    """Partitions whose ISR has lost replicas: those on other brokers, which are not there."""
    isr_expands: int = 0
    """Partitions whose ISR has more replicas than before: one that had none has this broker."""
    unclean: int = 0
    """Partitions whose ISR had replicas, and this broker was not among them."""

    def with_topic(self, before: TopicImage, after: TopicImage) -> "ElectionStatistics":
        """Count `elected`'s changes in."""
        shrinks, expands, unclean = self.isr_shrinks, self.isr_expands, self.unclean
        for index, partition in after.partitions.items():
            was = before.partitions[index].isr
            shrinks += len(partition.isr) < len(was)
            expands += len(partition.isr) > len(was)
            unclean += bool(was) and not set(partition.isr) <= set(was)
        return ElectionStatistics(isr_shrinks=shrinks, isr_expands=expands, unclean=unclean)


def above_the_logs(topic: TopicImage, logs: LogEpochs) -> TopicImage:
    """Another broker may have led these logs meanwhile: its epochs must not come again."""
    partitions = {}
    for index, partition in topic.partitions.items():
        latest = logs.latest_epoch(TopicPartition(topic.name, index))
        if latest is not None and latest >= partition.leader_epoch:
            partition = replace(partition, leader_epoch=latest + 1)
        partitions[index] = partition
    return replace(topic, partitions=partitions)


def expect_no_logs(name: str, indexes: Iterable[int], logs: LogEpochs) -> None:
    """New partitions have no logs yet. Raises KafkaError TOPIC_ALREADY_EXISTS where one lies.

    A topic that the metadata does not know (a lost store, a damaged file) is not served; one made
    anew under its name would take its records for its own, or hide them.
    """
    for index in indexes:
        log_dir = logs.dir_of(TopicPartition(name, index))
        if log_dir is not None:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"Topic '{name}' is not served, but {log_dir} holds records of its partition "
                f"{index}: register it with `pykafkalog adopt`, or move {name}-{index} away, while "
                "the broker is stopped.",
            )


def led_partitions(
    image: MetadataImage, name: str, broker_id: int
) -> tuple[list[tuple[int, int]], int | None]:
    """(index, leader epoch) of what a broker leads of a topic, and how many partitions it has.

    None instead of the number when there is no such topic.
    """
    topic = image.topic(name)
    if topic is None:
        return [], None
    return [
        (index, partition.leader_epoch)
        for index, partition in topic.partitions.items()
        if partition.leader == broker_id
    ], len(topic.partitions)


async def lead_partitions(
    replicas: Replicas,
    topic: TopicImage,
    partitions: Mapping[int, PartitionImage],
    config: TopicConfig,
    broker_id: int,
    *,
    is_new: bool,
) -> TopicImage:
    """Open and serve `partitions` of `topic`; the topic as it is after failures.

    New ones are opened all or none, and what is wrong with the first that cannot be opened is
    raised. But not when a disk failed: what was made on it cannot be taken away, and a second
    directory of the same partition, on another disk, would keep the next start from knowing which
    is the partition. So the topic stays, as it would if the disk failed a moment later.
    """
    failed: dict[int, PartitionImage] = {}
    for index, partition in partitions.items():
        if partition.leader != broker_id:
            continue
        tp = TopicPartition(topic.name, index)
        try:
            replicas.make_leader(tp, topic.topic_id, partition.leader_epoch, config, is_new)
        except Exception as error:
            if is_new and not _is_failed_disk(error):
                _close_new(replicas, topic.name, partitions)
                raise
            if not isinstance(error, KafkaError):
                raise
            log.error("Partition %s-%d has no leader: %s", topic.name, index, error)
            failed[index] = replace(partition, leader=NO_LEADER, offline_replicas=(broker_id,))
        await trio.lowlevel.checkpoint()
    if not failed:
        return topic
    return replace(topic, partitions={**topic.partitions, **failed})


def _is_failed_disk(error: Exception) -> bool:
    return isinstance(error, StorageError) and not isinstance(error, OutOfResources)


def expect_leaders(topic: TopicImage, indexes: Iterable[int]) -> None:
    """Raises KAFKA_STORAGE_ERROR when one of these new partitions could not be opened."""
    for index in indexes:
        if topic.partitions[index].offline_replicas:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic.name}-{index} is made, but its disk failed: it has no leader "
                "until the broker starts with a disk that works.",
            )


def _close_new(replicas: Replicas, name: str, partitions: Mapping[int, PartitionImage]) -> None:
    """What was opened of a creation that fails: closed, and its logs deleted."""
    for index in partitions:
        try:
            replicas.delete_partition(TopicPartition(name, index))
        except KafkaError as error:
            log.error("The log of %s-%d, which is not served, stays: %s", name, index, error)
