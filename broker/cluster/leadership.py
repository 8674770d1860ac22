"""Elections: which partitions this broker leads after a start.

A stand-alone broker leads every partition of which it has a replica. Each start is an election that
raises the leader epochs, also above those in the logs, because another broker may have led these
since. A new topic's leaders are part of its plan (`topic_plan`). How a partition that the image
gives to this broker becomes led: `broker.replication.delta_application`. After Kafka's
`PartitionStateMachine`.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker.cluster.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from protocol.types import TopicPartition

if TYPE_CHECKING:
    from storage.log_manager import LogManager


def elected(topic: TopicImage, broker_id: int) -> TopicImage:
    """Return the topic after the election at a start, with all leader epochs raised."""
    partitions: dict[int, PartitionImage] = {}
    last: tuple[PartitionImage, PartitionImage] | None = None
    for index, partition in topic.partitions.items():
        if last is None or partition is not last[0]:  # mostly all are one value
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
    """Counts of what the elections of a start have changed."""

    isr_shrinks: int = 0
    """Partitions whose ISR has lost the replicas on other brokers, which are not live."""
    isr_expands: int = 0
    """Partitions whose ISR was empty and now has this broker."""
    unclean: int = 0
    """Partitions whose ISR had replicas, but not this broker, which leads now."""

    def with_topic(self, before: TopicImage, after: TopicImage) -> "ElectionStatistics":
        """Return the counts with the changes of one topic's election added."""
        shrinks, expands, unclean = self.isr_shrinks, self.isr_expands, self.unclean
        for index, partition in after.partitions.items():
            was = before.partitions[index].isr
            shrinks += len(partition.isr) < len(was)
            expands += len(partition.isr) > len(was)
            unclean += bool(was) and not set(partition.isr) <= set(was)
        return ElectionStatistics(isr_shrinks=shrinks, isr_expands=expands, unclean=unclean)


def above_the_logs(topic: TopicImage, logs: "LogManager") -> TopicImage:
    """Raise leader epochs above those in the logs, which another broker may have written."""
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
    """Return (index, leader epoch) of a topic's partitions that a broker leads, and their total.

    The total number of partitions is None if there is no such topic.
    """
    topic = image.topic(name)
    if topic is None:
        return [], None
    return [
        (index, partition.leader_epoch)
        for index, partition in topic.partitions.items()
        if partition.leader == broker_id
    ], len(topic.partitions)
