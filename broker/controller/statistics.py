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
    """All but the elections and `events` are 0 on a broker that is not the controller."""

    gauges: ControllerStatistics
    """The numbers that a broker has which stands alone, too."""
    replicas_to_delete_count: int = 0
    topics_ineligible_to_delete_count: int = 0
    replicas_ineligible_to_delete_count: int = 0
    active_broker_count: int = 0
    events: EventStatistics
    channels: dict[int, ChannelStatistics] = field(default_factory=dict)
    """By broker."""


def counted(
    state: ControllerState | None,
    unclean_elections: int,
    events: EventStatistics,
    channels: dict[int, ChannelStatistics],
) -> ClusterControllerStatistics:
    """Count. Only replicas of topics that are being deleted are walked over.

    `unclean_elections`: since the start of the broker.
    """
    elections = ElectionStatistics(unclean=unclean_elections)
    if state is None:
        return ClusterControllerStatistics(
            gauges=ControllerStatistics(elections=elections), events=events
        )
    to_delete = ineligible = 0
    for name in state.to_delete:
        topic = state.topics.get(name)
        for replica in () if topic is None else topic.replicas():
            one = state.replica_state(replica)
            to_delete += one is not ReplicaState.DELETION_SUCCESSFUL
            ineligible += one is ReplicaState.DELETION_INELIGIBLE
    return ClusterControllerStatistics(
        gauges=ControllerStatistics(
            active_controller_count=1,
            global_topic_count=len(state.topics),
            global_partition_count=state.partitions_with_leadership,
            offline_partitions_count=state.offline_partitions,
            preferred_replica_imbalance_count=state.imbalanced_partitions,
            topics_to_delete_count=len(state.to_delete),
            elections=elections,
        ),
        replicas_to_delete_count=to_delete,
        topics_ineligible_to_delete_count=len(state.deletion_ineligible),
        replicas_ineligible_to_delete_count=ineligible,
        active_broker_count=len(state.brokers),
        events=events,
        channels=channels,
    )
