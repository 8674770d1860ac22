"""Elections: who leads what after a start.

Stand-alone, a partition is led by the broker that has a replica of it. Each start is an election,
so leader epochs grow; and because another broker may have led the logs meanwhile, they grow above
what the logs hold. After Kafka's `PartitionStateMachine`.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from protocol.types import TopicPartition


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
    partitions: dict[int, PartitionImage] = {}
    last: tuple[PartitionImage, PartitionImage] | None = None
    for index, partition in topic.partitions.items():
        if last is None or partition is not last[0]:  # they are one value, mostly
            here = broker_id in partition.replicas
            after = replace(
                partition,
                leader=broker_id if here else NO_LEADER,
                leader_epoch=partition.leader_epoch + 1,
                isr=(broker_id,) if here else (),
            )
            last = partition, after
        partitions[index] = last[1]
    return replace(topic, partitions=partitions)


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
