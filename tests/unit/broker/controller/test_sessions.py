"""Controllers come and go: elections, sessions that end, zombies, takeovers, lost answers."""

import json
from collections.abc import Iterator

import pytest

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import Create, Delete, Put
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import (
    deletion_path,
    encode_assignment,
    encode_leader_and_isr,
    encode_partitions,
    partition_state_path,
    topic_path,
)
from broker.controller.controller_tree import ControllerTree
from broker.controller.fenced_store import ControllerMoved, FencedStore
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from tests.support.controller_world import ControllerWorld, RestingWorld

T0 = TopicPartition("t", 0)


@pytest.fixture
def restless() -> RestingWorld:
    """Three brokers that stand for election; the first one is the controller."""
    world = RestingWorld()
    world.start_broker(1, 2, 3)
    world.start_controller(1)
    world.start_controller(2)
    world.start_controller(3)
    return world


@pytest.fixture
def world(restless: RestingWorld) -> Iterator[RestingWorld]:
    """The same, of which all agree again after a test."""
    yield restless
    restless.settle()
    restless.check()


def who(world: RestingWorld) -> int:
    node = world.tree.value("/controller")
    assert node is not None
    return int(json.loads(node)["brokerid"])


def test_one_is_elected_and_all_know_whom(world: RestingWorld) -> None:
    assert [one.is_active for one in world.controllers.values()] == [True, False, False]
    assert [one.controller_id for one in world.controllers.values()] == [1, 1, 1]


def test_others_refuse_what_only_the_controller_does(world: RestingWorld) -> None:
    with pytest.raises(KafkaError) as caught:
        world.ask(world.controllers[2].requests.elect_leaders(0, None))
    assert caught.value.code is ErrorCode.NOT_CONTROLLER


def test_the_next_controller_goes_on_with_everything(world: RestingWorld) -> None:
    world.start_broker(4)
    world.create_topic("t", [[2, 3]])
    world.create_topic("gone", [[1, 2]])
    world.ask(world.controllers[1].requests.alter_reassignments({T0: (2, 4)}))
    for broker_id in world.brokers:
        world.brokers[broker_id].silent = True
    world.write(Create(deletion_path("gone")))
    world.expire(1)
    world.settle()
    for broker_id in world.brokers:
        world.brokers[broker_id].silent = False
    world.create_topic("new", [[3]])
    world.scheduler.advance(1)
    assert who(world) == 2
    assert [one.is_active for one in world.controllers.values()] == [False, True, False]
    assert world.tree.names("/brokers/topics") == ["new", "t"]
    assert world.stored("new").controller_epoch == 2
    assert world.assignment("t").is_being_reassigned


def test_a_session_that_ends_ends_the_term_and_a_new_one_takes_part_again(
    world: RestingWorld,
) -> None:
    world.expire(1)
    assert not world.controllers[1].is_active
    assert world.controllers[1].controller_id == -1
    world.settle()
    world.controllers[1].session_began()
    world.settle()
    assert [one.controller_id for one in world.controllers.values()] == [2, 2, 2]
    world.expire(2)
    world.expire(3)
    world.settle()
    assert who(world) == 1
    assert world.controllers[1].epoch == 3


def test_requests_under_way_are_refused_when_the_session_ends(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    asked = [
        world.scheduler.start(world.controllers[1].requests.alter_reassignments({T0: (3,)}))
        for _ in range(3)
    ]
    world.scheduler._step()
    world.expire(1)
    world.settle()
    for outcome in asked:
        (error,) = outcome
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.NOT_CONTROLLER
    assert world.assignment("t") == ReplicaAssignment((1, 2))


def test_a_zombie_writes_nothing(world: RestingWorld) -> None:
    """Its session is over and another one was elected, but it has not heard of that."""
    world.create_topic("t", [[2, 3]])
    zombie, session = world.controllers[1], world.sessions[1]
    session.cut_off = True  # nothing of what follows reaches it
    session.expire()
    world.settle()
    assert who(world) == 2
    writes = len(world.tree.history)
    session.cut_off = False  # its operations do again, its watches not yet
    with pytest.raises(KafkaError) as caught:
        world.ask(zombie.requests.alter_reassignments({T0: (3, 2)}))
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    world.settle()
    assert len(world.tree.history) == writes
    assert not zombie.is_active
    assert zombie.controller_id == 2


def test_a_broker_that_knows_a_later_controller_makes_a_zombie_look(world: RestingWorld) -> None:
    world.sessions[1].cut_off = True
    world.sessions[1].expire()
    world.settle()
    assert [one.is_active for one in world.controllers.values()] == [True, True, False]
    world.sessions[1].cut_off = False
    world.controllers[1].unclean_elections_allowed()
    term = world.controllers[1]._term
    assert term is not None
    world.ask(term._sending.metadata([2]))
    assert [one.is_active for one in world.controllers.values()] == [False, True, False]


def test_every_write_of_a_controller_is_fenced(world: RestingWorld) -> None:
    """Whatever it writes: after another election it changes nothing."""
    world.create_topic("t", [[2, 3]])
    store = FencedStore(world.admin, 9, world.scheduler.wall_ms)
    tree = ControllerTree(store)
    store.epoch_version = world.controllers[1].epoch_version - 1
    state = world.stored("t")
    before = len(world.tree.history)
    for write in (
        lambda: tree.update_states({T0: state}),
        lambda: tree.create_states({TopicPartition("t", 5): state}),
        lambda: tree.set_assignment("t", None, {}),
        lambda: tree.delete_topic("t"),
        lambda: store.delete_all(["/brokers/topics/t"]),
        lambda: tree.write_reassignment({T0: (1,)}),
        lambda: tree.write_reassignment({}),
        lambda: tree.allocate_producer_ids(1),
    ):
        with pytest.raises(ControllerMoved):
            world.ask(write())  # type: ignore[arg-type, unused-ignore]
    world.ask(store.resign())
    assert len(world.tree.history) == before


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_answers_of_the_store_may_be_lost(world: RestingWorld, lost: int) -> None:
    session = world.sessions[1]
    session.lose_answers = lost
    world.create_topic("t", [[2, 3], [3, 2], [1, 3]])
    world.scheduler.advance(5)
    world.check()
    session.lose_answers = lost
    world.kill_broker(3)
    world.scheduler.advance(5)
    world.check()
    assert [world.stored("t", index).leader for index in range(3)] == [2, 2, 1]
    session.lose_answers = lost
    controller = world.controllers[1]
    # The block of a write whose answer was lost is used by nobody.
    block = world.ask(controller.requests.allocate_producer_ids(1, world.brokers[1].epoch))
    assert block == (lost * 1000, 1000)


def test_the_answer_to_a_change_of_an_isr_may_be_lost(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.sessions[1].lose_answers = 1
    world.kill_broker(3)
    world.scheduler.advance(5)
    assert world.stored("t").isr == tuple(world.brokers[2].metadata[T0].isr) == (2,)


def test_the_answer_to_a_wish_of_a_leader_may_be_lost(world: RestingWorld) -> None:
    """The write is found made; the leader and the controller know the same partition epoch."""
    topic_id = world.create_topic("t", [[2, 3]])
    leader, known = world.brokers[2], world.stored("t")
    for lost, isr in ((1, (2,)), (0, (2, 3))):
        world.sessions[1].lose_answers = lost
        wish = leader.isr_request(topic_id, 0, known._replace(isr=isr))
        answer = world.ask(world.controllers[1].requests.alter_partition(wish))
        (altered,) = answer.topics[0].partitions
        known = world.stored("t")
        assert (altered.error_code, altered.isr) == (ErrorCode.NONE, isr)
        assert (altered.partition_epoch, known.isr) == (known.partition_epoch, isr)


def test_a_wish_that_another_write_has_overtaken_is_refused_once(world: RestingWorld) -> None:
    topic_id = world.create_topic("t", [[2, 3]])
    leader, known = world.brokers[2], world.stored("t")
    overtaking = encode_leader_and_isr(known._replace(leader_epoch=known.leader_epoch))
    world.write(Put(partition_state_path("t", 0), overtaking))
    codes = []
    for state in (known, world.stored("t")):
        wish = leader.isr_request(topic_id, 0, state._replace(isr=(2,)))
        answer = world.ask(world.controllers[1].requests.alter_partition(wish))
        codes.append(answer.topics[0].partitions[0].error_code)
    assert codes == [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NONE]


def test_the_answer_to_the_election_may_be_lost() -> None:
    world = ControllerWorld()
    world.start_broker(1)
    controller = world.start_controller(1)
    world.sessions[1].lose_answers = 2  # of the epoch's node, and of the election
    world.scheduler.advance(5)
    assert controller.is_active
    assert (controller.epoch, world.tree.value("/controller_epoch")) == (1, b"1")


def test_a_store_that_is_away_for_a_while_is_waited_for(world: RestingWorld) -> None:
    session = world.sessions[1]
    session.cut_off = True
    world.create_topic("t", [[2, 3]])
    world.scheduler.advance(3)
    assert world.controllers[1].is_active
    session.reconnect()
    world.scheduler.advance(2)
    assert world.stored("t").leader == 2


def test_a_controller_that_steps_down_is_followed_at_once(world: RestingWorld) -> None:
    world.ask(world.controllers[1].step_down())
    assert who(world) == 2
    assert not world.controllers[1].is_active


def test_what_waits_when_it_steps_down_is_dropped() -> None:
    world = RestingWorld()
    world.start_broker(1)
    controller = world.start_controller(1)
    node = encode_assignment(None, {0: ReplicaAssignment((1,))})
    world.tree.apply([Create(deletion_path("t"))], None)
    world.tree.apply([Create(topic_path("u"), node)], None)
    assert controller.statistics().events.queued == 2
    world.ask(controller.step_down())
    assert partition_state_path("u", 0) not in world.tree.nodes


def test_an_operator_may_remove_the_controllers_node(world: RestingWorld) -> None:
    world.write(Delete("/controller"))
    active = [one for one in world.controllers.values() if one.is_active]
    assert len(active) == 1
    assert active[0].epoch == 2


def test_a_death_while_the_next_term_begins_is_noticed() -> None:
    """An event of the last term, still in the queue, does not stand for it."""
    world = RestingWorld()
    world.start_broker(1, 2, 3)
    controller = world.start_controller(1)
    world.create_topic("t", [[2, 3]])
    first = controller._term
    world.tree.apply([Delete("/controller")], None)
    ControllerWorld.start_broker(world, 4)
    while (
        controller._term is None or controller._term is first or not controller._term.state.brokers
    ):
        assert world.scheduler._step()
    ControllerWorld.kill_broker(world, 2)
    world.settle()
    assert sorted(controller._term.state.brokers) == [1, 3, 4]
    assert world.stored("t").leader == 3


@pytest.mark.parametrize("steps", [0, 6, 20])
def test_a_registration_that_is_repeated_in_a_session_changes_nothing(steps: int) -> None:
    """`steps` of the election or the term later."""
    world = RestingWorld()
    world.start_broker(1, 2, 3)
    controller = world.start_controller(1)
    world.create_topic("t", [[2, 3]])
    world.expire(1)
    controller.session_began()
    for _ in range(steps):
        world.scheduler._step()
    controller.session_began()
    world.settle()
    assert (controller.is_active, controller.epoch) == (True, 2)
    assert controller.epoch_version == world.tree.nodes["/controller_epoch"].version
    world.kill_broker(2)
    assert world.stored("t").leader == 3


def test_a_later_epoch_without_another_controller_makes_it_stand_again(world: RestingWorld) -> None:
    """Somebody has written /controller_epoch: the next write is refused, and the term ends."""
    world.tree.apply([Put("/controller_epoch", b"41")], None)
    world.create_topic("t", [[2, 3]])
    assert world.stored("t").controller_epoch == 42


def test_it_takes_over_from_kafka_and_what_kafka_left() -> None:
    """Nodes as an older Kafka leaves them: no topic ids, elections and notifications pending."""
    world = RestingWorld()
    world.start_broker(1, 2, 3)
    state = encode_leader_and_isr(LeaderAndIsr(3, (2, 3), 7, 0, 5))
    world.write(
        Create("/controller_epoch", b"6"),
        Create(topic_path("t"), encode_assignment(None, {0: ReplicaAssignment((2, 3))})),
        Create(partition_state_path("t", 0), state),
        Create("/admin/preferred_replica_election", encode_partitions([T0])),
        Create("/isr_change_notification/isr_change_0000000007", encode_partitions([T0])),
    )
    controller = world.start_controller(1)
    assert controller.epoch == 7
    assert world.stored("t")[:3] == (2, (2, 3), 8)
    node = world.tree.value(topic_path("t"))
    assert node is not None
    assert json.loads(node)["topic_id"]
    assert world.tree.value("/admin/preferred_replica_election") is None
    assert world.tree.names("/isr_change_notification") == []
    world.check()


def test_what_waits_for_a_store_that_is_away_ends_with_the_session(restless: RestingWorld) -> None:
    restless.create_topic("t", [[1, 2]])
    restless.sessions[1].cut_off = True
    asked = restless.scheduler.start(
        restless.controllers[1].requests.alter_reassignments({T0: (3,)})
    )
    restless.scheduler.advance(2)
    assert asked == []
    restless.controllers[1].session_ended()
    restless.scheduler.advance(2)
    (error,) = asked
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("end", ["expire", "step down"])
def test_a_former_controller_sends_nothing_more(end: str) -> None:
    """Nobody follows it, so the brokers know of no later epoch and would obey."""
    world = RestingWorld()
    world.start_broker(1, 2)
    controller = world.start_controller(1)
    for broker in world.brokers.values():
        broker.silent = True
        broker.received.clear()
    world.create_topic("t", [[1, 2]])
    if end == "expire":
        world.expire(1)
    else:
        world.ask(controller.step_down())
    for broker in world.brokers.values():
        broker.silent = False
    world.scheduler.advance(10)
    assert [broker.received for broker in world.brokers.values()] == [[], []]
