"""Legal transitions, targets of reassignments, and what is given back."""

import pytest

from broker.cluster.image import BrokerImage
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.controller.balance import to_give_back
from broker.controller.cluster_state import (
    PARTITION_FROM,
    REPLICA_FROM,
    ControllerState,
    LiveBroker,
    PartitionStage,
    ReplicaState,
)
from broker.controller.reassignment_rules import check_target, is_complete, reassignment
from broker.controller.replica_transitions import without_replica
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import at_once

P, R = PartitionStage, ReplicaState


def test_the_legal_transitions_are_kafkas() -> None:
    """PartitionStateMachineTest and ReplicaStateMachineTest: every pair of states."""
    assert {(a.name, b.name) for b, froms in PARTITION_FROM.items() for a in froms} == {
        ("NON_EXISTENT", "NEW"),
        ("NEW", "ONLINE"),
        ("ONLINE", "ONLINE"),
        ("OFFLINE", "ONLINE"),
        ("NEW", "OFFLINE"),
        ("ONLINE", "OFFLINE"),
        ("OFFLINE", "OFFLINE"),
        ("OFFLINE", "NON_EXISTENT"),
    }
    serving = ("NEW", "ONLINE", "OFFLINE", "DELETION_INELIGIBLE")
    assert {(a.name, b.name) for b, froms in REPLICA_FROM.items() for a in froms} == {
        ("NON_EXISTENT", "NEW"),
        *((one, "ONLINE") for one in serving),
        *((one, "OFFLINE") for one in serving),
        ("OFFLINE", "DELETION_STARTED"),
        ("DELETION_STARTED", "DELETION_SUCCESSFUL"),
        ("DELETION_STARTED", "DELETION_INELIGIBLE"),
        ("OFFLINE", "DELETION_INELIGIBLE"),
        ("DELETION_SUCCESSFUL", "NON_EXISTENT"),
    }
    assert PARTITION_FROM.keys() == set(P)
    assert REPLICA_FROM.keys() == set(R)


@pytest.mark.parametrize(
    ("leader", "isr", "gone", "after"),
    [
        (1, (1, 2), 2, (1, (1,))),
        (1, (1, 2), 1, (-1, (2,))),
        (1, (1,), 1, (-1, (1,))),  # the last one in sync stays in the ISR
        (-1, (1,), 1, (-1, (1,))),
    ],
)
def test_a_replica_leaves_the_isr(
    leader: int, isr: tuple[int, ...], gone: int, after: tuple[int, tuple[int, ...]]
) -> None:
    found = without_replica(LeaderAndIsr(leader, isr, 5, 9), gone)
    assert (found.leader, found.isr) == after
    assert (found.leader_epoch, found.partition_epoch) == (6, 9)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ((), "Empty replica list"),
        ((1, 2, 1), "Duplicate replica ids"),
        ((1, -1), "Invalid broker id"),
        ((1, 9), "brokers that are not alive"),
    ],
)
def test_some_targets_are_refused(target: tuple[int, ...], text: str) -> None:
    with pytest.raises(KafkaError, match=text) as caught:
        check_target(ReplicaAssignment((1, 2, 8)), target, {1, 2, 3})
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_target_may_keep_a_broker_that_is_gone() -> None:
    check_target(ReplicaAssignment((1, 2, 8)), (8, 3), {1, 2, 3})


def test_a_reassignment_begins_is_replaced_and_taken_back() -> None:
    origin = ReplicaAssignment((1, 2))
    assert reassignment(origin, None) is None
    begun = reassignment(origin, (3, 4))
    assert begun == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
    assert reassignment(begun, (3, 5)) == ReplicaAssignment((3, 5, 1, 2), (3, 5), (1, 2))
    assert reassignment(begun, None) == ReplicaAssignment((1, 2))
    assert not is_complete(begun, (1, 2, 3))
    assert is_complete(begun, (1, 2, 3, 4))
    assert is_complete(origin, ())


def test_leaders_are_given_back_where_too_few_are_preferred() -> None:
    state = ControllerState()
    for broker_id in (1, 2, 3):
        image = BrokerImage(broker_id=broker_id, endpoints=())
        state.brokers[broker_id] = LiveBroker(image, broker_id)
    state.add_topic("t", b"t" * 16)

    def put(index: int, replicas: tuple[int, ...], leader: int, isr: tuple[int, ...]) -> None:
        tp = TopicPartition("t", index)
        state.set_assignment(tp, ReplicaAssignment(replicas))
        state.set_leadership(tp, LeaderAndIsr(leader, isr))

    for index in range(10):
        put(index, (1, 2), 1, (1, 2))
    put(10, (2, 1), 1, (1, 2))
    put(11, (2, 1), 1, (1,))
    put(12, (3, 1), 3, (1, 3))
    put(0, (1, 2), 2, (1, 2))  # a tenth of those of broker 1: not more than ten percent

    def found(percentage: int) -> list[list[int]]:
        return [[tp.partition for tp in some] for some in at_once(to_give_back(state, percentage))]

    assert found(10) == [[10]]  # 11 not: its preferred replica is not in sync
    assert found(9) == [[0], [10]]
    assert found(100) == []
    assert state.imbalanced_partitions == 3
    state.offline_dirs[2] = {TopicPartition("t", 10)}
    assert found(10) == []
    state.queue_deletion(["t"])
    assert found(0) == []
    assert state.imbalanced_partitions == 0
    state._check()
