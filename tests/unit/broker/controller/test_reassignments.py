"""Reassignments of partitions, asked of the controller or by the tree (KIP-455)."""

from broker.cluster.metadata_store import Create
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import deletion_path, encode_reassignment
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.types import TopicPartition
from tests.support.controller_world import RestingWorld, code_of

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def test_a_partition_moves_in_two_phases(world: RestingWorld) -> None:
    world.start_broker(4)
    world.create_topic("t", [[1, 2]])
    controller = world.controllers[1]
    results = world.ask(controller.requests.alter_reassignments({T0: (3, 4), T1: (1,)}))
    assert results[T0] is None
    assert code_of(results[T1]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    moving = ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
    assert world.assignment("t") == moving
    assert world.stored("t")[:3] == (1, (1, 2), 1)
    orders = [one for one in world.brokers[4].received if isinstance(one, LeaderAndIsrRequest)]
    assert {one.topic_states[0].partition_states[0].is_new for one in orders} == {True}
    assert not world.brokers[1].replicas[T0].is_new
    assert tuple(world.brokers[1].replicas[T0].adding_replicas) == (3, 4)
    assert world.ask(controller.requests.list_reassignments(None)) == {T0: moving}
    world.check()
    world.alter(T0, (1, 2, 3))
    assert world.assignment("t") == moving
    world.alter(T0, (1, 2, 3, 4))
    assert world.assignment("t") == ReplicaAssignment((3, 4))
    assert world.stored("t")[:2] == (3, (3, 4))
    assert world.brokers[1].stopped == world.brokers[2].stopped == {T0: True}
    assert world.ask(controller.requests.list_reassignments([T0])) == {}


def test_a_reassignment_that_keeps_the_leader_raises_its_epoch(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    world.ask(world.controllers[1].requests.alter_reassignments({T0: (3, 1)}))
    world.alter(T0, (1, 2, 3))
    assert world.stored("t")[:2] == (1, (1, 3))
    assert world.brokers[1].replicas[T0].leader_epoch == world.stored("t").leader_epoch


def test_a_reassignment_is_taken_back_and_replaced(world: RestingWorld) -> None:
    world.start_broker(4)
    world.create_topic("t", [[1, 2]])
    controller = world.controllers[1]
    nothing = world.ask(controller.requests.alter_reassignments({T0: None}))
    assert code_of(nothing[T0]) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    world.ask(controller.requests.alter_reassignments({T0: (3, 2)}))
    world.ask(controller.requests.alter_reassignments({T0: (4, 2)}))
    assert world.assignment("t") == ReplicaAssignment((4, 2, 1), (4,), (1,))
    assert world.brokers[3].stopped == {T0: True}
    world.ask(controller.requests.alter_reassignments({T0: None}))
    assert set(world.assignment("t").replicas) == {1, 2}
    assert world.brokers[4].stopped == {T0: True}
    for target in ((3, 2), (3, 4)):  # to broker 3 all the while
        world.ask(controller.requests.alter_reassignments({T0: target}))
    assert world.brokers[3].replicas[T0].leader_epoch == world.stored("t").leader_epoch


def test_a_reassignment_by_the_tree_ends_with_its_node(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    node = "/admin/reassign_partitions"
    value = encode_reassignment({T0: (1, 3), T1: (1,)})
    world.write(Create(node, value))
    assert world.tree.value(node) == encode_reassignment({T0: (1, 3)})
    world.alter(T0, (1, 2, 3))
    assert world.tree.value(node) is None
    assert world.assignment("t") == ReplicaAssignment((1, 3))


def test_a_partition_that_is_done_leaves_the_others_of_the_tree_alone(world: RestingWorld) -> None:
    """The node is written again for each that is done: no reason for new leader epochs."""
    world.create_topic("t", [[1]] * 3)
    partitions = [TopicPartition("t", index) for index in range(3)]
    value = encode_reassignment(dict.fromkeys(partitions, (1, 2)))
    world.write(Create("/admin/reassign_partitions", value))
    begun = [world.stored(*tp).leader_epoch for tp in partitions]
    for tp in partitions:
        world.alter(tp, (1, 2))
    assert [world.stored(*tp).leader_epoch for tp in partitions] == [each + 1 for each in begun]


def test_a_reassignment_may_have_to_keep_the_number_of_replicas(world: RestingWorld) -> None:
    """KIP-860: that of the reassignment under way, if there is one."""
    world.start_broker(4)
    world.create_topic("t", [[1, 2]])
    requests = world.controllers[1].requests

    def code(target: tuple[int, ...] | None) -> ErrorCode | None:
        answers = world.ask(requests.alter_reassignments({T0: target}, may_resize=False))
        return code_of(answers[T0])

    assert code((1,)) is code((1, 2, 3)) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code(()) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert code((1, 3)) is None
    world.ask(requests.alter_reassignments({T0: (1, 3, 4)}))
    assert code((1, 3)) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert code((2, 3, 4)) is code(None) is None
    assert sorted(world.assignment("t").target) == [1, 2]


def test_a_topic_that_moves_is_deleted_when_it_has_moved(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    world.ask(world.controllers[1].requests.alter_reassignments({T0: (1, 3)}))
    world.write(Create(deletion_path("t")))
    assert world.tree.names("/brokers/topics") == ["t"]
    world.alter(T0, (1, 2, 3))
    assert world.tree.names("/brokers/topics") == []
