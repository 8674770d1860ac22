"""Leaders come back to preferred replicas when a broker leads too few of those that it should.

For each broker: of the partitions whose preferred replica it has, how many are led by another? If
the share is above `leader.imbalance.per.broker.percentage`, the preferred replica is elected for
those of them whose preferred replica is online and in sync.

Pure, in turns. Source: `KafkaController.checkAndTriggerAutoLeaderRebalance` (3.9).
"""

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.controller.cluster_state import ControllerState
from broker.controller.elections import preferred_leader
from protocol.types import TopicPartition
from storage.waits import PAUSE


async def to_give_back(state: ControllerState, percentage: int) -> list[list[TopicPartition]]:
    """Return the partitions to elect anew, a list per broker that is to get them."""
    preferred: dict[int, int] = {}
    elsewhere: dict[int, list[tuple[TopicPartition, LeaderAndIsr]]] = {}
    for topic in list(state.topics.values()):
        if topic.name in state.to_delete:
            continue
        for index, assignment in topic.assignments.items():
            if assignment.replicas:
                broker_id = assignment.replicas[0]
                preferred[broker_id] = preferred.get(broker_id, 0) + 1
                leadership = topic.leaderships.get(index)
                if leadership is not None and leadership.leader != broker_id:
                    tp = TopicPartition(topic.name, index)
                    elsewhere.setdefault(broker_id, []).append((tp, leadership))
            await PAUSE
    found = []
    for broker_id, partitions in sorted(elsewhere.items()):
        if len(partitions) / preferred[broker_id] > percentage / 100:
            able = []
            for tp, leadership in partitions:
                if can_preferred_lead(state, tp, leadership):
                    able.append(tp)
                await PAUSE
            if able:
                found.append(able)
    return found


def can_preferred_lead(
    state: ControllerState, tp: TopicPartition, leadership: LeaderAndIsr
) -> bool:
    """Whether the preferred replica is online and in sync."""
    replicas = state.assignment(tp).replicas
    alive = state.online(replicas, tp)
    return preferred_leader(replicas, leadership, alive).leadership is not None
