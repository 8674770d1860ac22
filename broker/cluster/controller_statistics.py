"""The controller's numbers for metrics."""

from dataclasses import dataclass, field

from broker.cluster.image import NO_LEADER, MetadataImage
from broker.cluster.leadership import ElectionStatistics
from storage.waits import PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatistics:
    """Gauges of `kafka.controller:type=KafkaController`."""

    active_controller_count: int = 0
    global_topic_count: int = 0
    global_partition_count: int = 0
    offline_partitions_count: int = 0
    preferred_replica_imbalance_count: int = 0
    """Partitions led by another replica than the preferred (first) one."""
    topics_to_delete_count: int = 0
    elections: ElectionStatistics = field(default_factory=ElectionStatistics)
    """Counts of this start's elections."""


async def counted(
    image: MetadataImage, elections: ElectionStatistics, topics_to_delete: int
) -> ControllerStatistics:
    """Count the topics and partitions of the image."""
    offline = imbalanced = 0
    for topic in list(image.topics()):
        for partition in topic.partitions.values():
            offline += partition.leader == NO_LEADER
            imbalanced += partition.leader not in (NO_LEADER, partition.replicas[0])
        await PAUSE
    return ControllerStatistics(
        active_controller_count=1,
        global_topic_count=image.topic_count(),
        global_partition_count=image.partition_count(),
        offline_partitions_count=offline,
        preferred_replica_imbalance_count=imbalanced,
        topics_to_delete_count=topics_to_delete,
        elections=elections,
    )
