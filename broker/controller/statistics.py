"""The controller's numbers for metrics: `kafka.controller`'s KafkaController, ControllerStats,
ControllerEventManager and ControllerChannelManager."""

from dataclasses import dataclass, field

from broker.cluster.controller_statistics import ControllerStatistics
from broker.cluster.leadership import ElectionStatistics
from broker.controller.channels import ChannelStatistics
from broker.controller.cluster_state import ControllerState, ReplicaState
from broker.controller.events import EventStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterControllerStatistics:
    """All but `unclean_elections` and `events` are 0 on a broker that is not the controller."""

    active_controller_count: int = 0
    offline_partitions_count: int = 0
    preferred_replica_imbalance_count: int = 0
    global_topic_count: int = 0
    global_partition_count: int = 0
    topics_to_delete_count: int = 0
    replicas_to_delete_count: int = 0
    topics_ineligible_to_delete_count: int = 0
    replicas_ineligible_to_delete_count: int = 0
    active_broker_count: int = 0
    reassigning_partitions_count: int = 0
    unclean_elections: int = 0
    """Unclean leader elections since the start of the broker."""
    events: EventStatistics
    channels: dict[int, ChannelStatistics] = field(default_factory=dict)
    """By broker."""


def as_gauges(found: ClusterControllerStatistics) -> ControllerStatistics:
    """Return the numbers that a broker has which stands alone, too."""
    return ControllerStatistics(
        active_controller_count=found.active_controller_count,
        global_topic_count=found.global_topic_count,
        global_partition_count=found.global_partition_count,
        offline_partitions_count=found.offline_partitions_count,
        preferred_replica_imbalance_count=found.preferred_replica_imbalance_count,
        topics_to_delete_count=found.topics_to_delete_count,
        elections=ElectionStatistics(unclean=found.unclean_elections),
    )


def counted(
    state: ControllerState | None,
    unclean_elections: int,
    events: EventStatistics,
    channels: dict[int, ChannelStatistics],
) -> ClusterControllerStatistics:
    """Count. Only replicas of topics that are being deleted are walked over."""
    if state is None:
        return ClusterControllerStatistics(unclean_elections=unclean_elections, events=events)
    to_delete = ineligible = 0
    for name in state.to_delete:
        topic = state.topics.get(name)
        for replica in () if topic is None else topic.replicas():
            one = state.replica_state(replica)
            to_delete += one is not ReplicaState.DELETION_SUCCESSFUL
            ineligible += one is ReplicaState.DELETION_INELIGIBLE
    return ClusterControllerStatistics(
        active_controller_count=1,
        offline_partitions_count=state.offline_partitions,
        preferred_replica_imbalance_count=state.imbalanced_partitions,
        global_topic_count=len(state.topics),
        global_partition_count=state.partitions_with_leadership,
        topics_to_delete_count=len(state.to_delete),
        replicas_to_delete_count=to_delete,
        topics_ineligible_to_delete_count=len(state.deletion_ineligible),
        replicas_ineligible_to_delete_count=ineligible,
        active_broker_count=len(state.brokers),
        reassigning_partitions_count=len(state.reassigning),
        unclean_elections=unclean_elections,
        events=events,
        channels=channels,
    )
