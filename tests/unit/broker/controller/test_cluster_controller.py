"""One controller over a tree, with brokers that obey: what happens when something changes."""

import json

import pytest

from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.metadata_store import Create, Put
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.cluster.tree_values import (
    deletion_path,
    encode_assignment,
    encode_leader_and_isr,
    encode_log_dir_event,
    encode_partitions,
    encode_producer_id_block,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.controller.cluster_controller import ClusterController
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionRequest,
    BrokerState,
)
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest
from protocol.types import TopicPartition
from tests.support.controller_world import RestingWorld, code_of, controller_settings

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def active(world: RestingWorld) -> ClusterController:
    return next(one for one in world.controllers.values() if one.is_active)


def test_it_is_elected_and_tells_the_brokers_of_each_other(world: RestingWorld) -> None:
    controller = world.controllers[1]
    assert (controller.is_active, controller.controller_id, controller.epoch) == (True, 1, 1)
    assert world.tree.value("/controller_epoch") == b"1"
    assert controller.epoch_version == world.tree.nodes["/controller_epoch"].version
    node = world.tree.value("/controller")
    assert node is not None
    assert json.loads(node)["brokerid"] == 1
    assert world.tree.value("/feature") == b'{"features":{},"version":2,"status":1}'
    assert [world.brokers[one].brokers for one in (1, 2, 3)] == [(1, 2, 3)] * 3


def test_a_topic_made_by_anybody_gets_leaders(world: RestingWorld) -> None:
    topic_id = world.create_topic("t", [[1, 2, 3], [2, 3]])
    assert world.stored("t", 0) == LeaderAndIsr(1, (1, 2, 3), 0, 0, 1)
    assert world.stored("t", 1) == LeaderAndIsr(2, (2, 3), 0, 0, 1)
    assert world.brokers[1].replicas.keys() == {T0}
    assert world.brokers[3].replicas.keys() == {T0, T1}
    state = world.brokers[3].replicas[T0]
    assert state.is_new
    (request,) = [one for one in world.brokers[3].received if isinstance(one, LeaderAndIsrRequest)]
    assert [topic.topic_id for topic in request.topic_states] == [topic_id]


def test_leaders_come_before_metadata_and_that_before_stops(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    world.brokers[2].received.clear()
    world.admin.tree.apply([Create(deletion_path("t"))], None)
    world.settle()
    kinds = [type(one) for one in world.brokers[2].received]
    assert kinds.index(UpdateMetadataRequest) < kinds.index(StopReplicaRequest)


def test_a_topic_without_a_live_replica_waits_for_one(world: RestingWorld) -> None:
    world.create_topic("t", [[4]])
    assert partition_state_path("t", 0) not in world.tree.nodes
    world.start_broker(4)
    assert world.stored("t") == LeaderAndIsr(4, (4,), 0, 0, 1)


def test_partitions_are_added(world: RestingWorld) -> None:
    topic_id = world.create_topic("t", [[1, 2]])
    grown = {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((3, 1))}
    world.write(Put(topic_path("t"), encode_assignment(topic_id, grown)))
    assert world.stored("t", 1).leader == 3


def test_a_broker_that_fails_loses_its_leaderships(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2], [2, 3]])
    world.kill_broker(2)
    assert world.stored("t", 0) == LeaderAndIsr(1, (1,), 1, 1, 1)
    assert world.stored("t", 1) == LeaderAndIsr(3, (3,), 1, 1, 1)
    world.check()
    assert tuple(world.brokers[1].metadata[T0].offline_replicas) == (2,)
    world.start_broker(2)
    assert world.stored("t", 1).leader == 3  # it does not come back on its own
    assert world.brokers[2].replicas[T1].leader == 3
    assert tuple(world.brokers[1].metadata[T0].offline_replicas) == ()


def test_the_last_replica_in_sync_stays_in_the_isr(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.kill_broker(3)
    world.kill_broker(2)
    assert world.stored("t")[:2] == (-1, (2,))
    assert world.controllers[1].statistics().gauges.offline_partitions_count == 1
    world.start_broker(3)
    assert world.stored("t")[:2] == (-1, (2,))
    world.start_broker(2)
    assert world.stored("t")[:2] == (2, (2,))
    assert world.controllers[1].statistics().gauges.offline_partitions_count == 0


def test_an_unclean_election_is_for_topics_that_allow_it(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]], {"unclean.leader.election.enable": "true"})
    world.create_topic("u", [[2, 3]])
    world.kill_broker(3)
    world.kill_broker(2)
    world.start_broker(3)
    assert world.stored("t")[:2] == (3, (3,))
    assert world.stored("t").recovering
    assert world.brokers[3].replicas[T0].leader_recovery_state == 1
    assert world.stored("u").leader == -1
    assert world.controllers[1].statistics().gauges.elections.unclean == 1
    world.controllers[1].reconfigure(controller_settings(1, unclean_leader_election_enable=True))
    world.settle()
    assert world.stored("u").leader == 3


def test_an_unclean_election_may_be_asked_for(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.kill_broker(3)
    world.kill_broker(2)
    world.start_broker(3)
    controller = world.controllers[1]
    results = world.ask(controller.requests.elect_leaders(1, [T0, T1]))
    assert results[T0] is None
    assert code_of(results[T1]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.stored("t")[:2] == (3, (3,))
    again = world.ask(controller.requests.elect_leaders(1, [T0]))
    assert code_of(again[T0]) is ErrorCode.ELECTION_NOT_NEEDED


def test_a_bounced_broker_fails_and_starts(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.bounce_broker(2)
    assert world.stored("t")[:3] == (3, (3,), 1)
    assert world.brokers[2].replicas[T0].leader == 3


def test_preferred_leaders_are_elected_when_asked(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3], [1, 3]])
    world.bounce_broker(2)
    controller = world.controllers[1]
    assert controller.statistics().gauges.preferred_replica_imbalance_count == 1
    refused = world.ask(controller.requests.elect_leaders(0, [T0]))
    assert code_of(refused[T0]) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    world.alter(T0, (3, 2))
    done = world.ask(controller.requests.elect_leaders(0, None))
    assert done == {T0: None}
    assert world.stored("t")[:2] == (2, (3, 2))
    assert controller.statistics().gauges.preferred_replica_imbalance_count == 0


def test_preferred_leaders_are_elected_by_the_tree(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.bounce_broker(2)
    world.alter(T0, (3, 2))
    value = encode_partitions([T0, T1])
    world.write(Create("/admin/preferred_replica_election", value))
    assert world.stored("t").leader == 2
    assert world.tree.value("/admin/preferred_replica_election") is None


def test_leaders_come_back_in_time() -> None:
    world = RestingWorld()
    world.start_broker(1, 2, 3)
    world.start_controller(
        1,
        controller_settings(
            1, auto_leader_rebalance_enable=True, leader_imbalance_check_interval_s=60
        ),
    )
    world.create_topic("t", [[2, 3]])
    world.scheduler.advance(6)
    world.bounce_broker(2)
    world.alter(T0, (3, 2))
    assert world.stored("t").leader == 3
    world.scheduler.advance(61)
    assert world.stored("t").leader == 2
    world.check()


def test_a_controlled_shutdown_moves_leaders_first(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3], [3, 2]])
    world.create_topic("alone", [[2]])
    controller = world.controllers[1]
    epoch = world.brokers[2].epoch
    with pytest.raises(KafkaError) as caught:
        world.ask(controller.requests.controlled_shutdown(2, epoch - 1))
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError) as caught:
        world.ask(controller.requests.controlled_shutdown(9, -1))
    assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE
    left = world.ask(controller.requests.controlled_shutdown(2, epoch))
    assert list(left) == []
    assert world.stored("t", 0)[:2] == (3, (3,))
    assert world.stored("t", 1)[:2] == (3, (3,))
    assert world.brokers[2].stopped == {T1: False}
    response = world.alter(T1, (3, 2))  # and it cannot come back into the ISR
    assert response.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    world.kill_broker(2)
    world.start_broker(2)
    assert world.alter(T1, (3, 2)).topics[0].partitions[0].error_code == ErrorCode.NONE


def test_what_nobody_else_can_lead_is_left(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3]])
    world.kill_broker(3)
    left = world.ask(world.controllers[1].requests.controlled_shutdown(2, world.brokers[2].epoch))
    assert list(left) == [T0]
    assert world.stored("t").leader == 2


def test_isr_changes_are_written_once_and_told(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2, 3]])
    response = world.alter(T0, (1, 2))
    (found,) = response.topics[0].partitions
    assert (found.error_code, found.leader_id, tuple(found.isr), found.partition_epoch) == (
        0,
        1,
        (1, 2),
        1,
    )
    assert world.stored("t") == LeaderAndIsr(1, (1, 2), 0, 1, 1)
    assert tuple(world.brokers[3].metadata[T0].isr) == (1, 2)
    assert world.brokers[3].metadata[T0].zk_version == 1


def test_an_isr_change_over_an_unknown_version_is_refused_and_that_version_noticed(
    world: RestingWorld,
) -> None:
    world.create_topic("t", [[1, 2, 3]])
    written = encode_leader_and_isr(LeaderAndIsr(1, (1, 3), 0, 0, 1))
    world.tree.apply([Put(partition_state_path("t", 0), written)], None)  # by an older leader
    term = world.controllers[1]._term
    assert term is not None
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=world.brokers[1].epoch,
        topics=[
            AlteredTopic(
                topic_id=term.state.topics["t"].topic_id,
                partitions=[AlteredPartition(new_isr_with_epochs=[BrokerState(broker_id=1)])],
            ),
            AlteredTopic(topic_id=b"?" * 16, partitions=[AlteredPartition(partition_index=7)]),
        ],
    )
    response = world.ask(world.controllers[1].requests.alter_partition(request))
    codes = [(one.partition_index, one.error_code) for t in response.topics for one in t.partitions]
    assert codes == [(7, ErrorCode.UNKNOWN_TOPIC_ID), (0, ErrorCode.INVALID_UPDATE_VERSION)]
    stale = AlterPartitionRequest(broker_id=1, broker_epoch=0)
    response = world.ask(world.controllers[1].requests.alter_partition(stale))
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    notification = "/isr_change_notification/isr_change_0000000000"
    world.write(Create(notification, encode_partitions([T0])))
    assert tuple(world.brokers[2].metadata[T0].isr) == (1, 3)
    assert world.tree.names("/isr_change_notification") == []


def test_replicas_in_a_failed_directory_are_offline(world: RestingWorld) -> None:
    world.create_topic("t", [[2, 3], [2, 3]])
    world.brokers[2].failed_dirs = {T0}
    world.write(
        Create("/log_dir_event_notification/log_dir_event_0000000000", encode_log_dir_event(2))
    )
    assert world.stored("t", 0)[:2] == (3, (3,))
    assert world.stored("t", 1)[:2] == (2, (2, 3))
    assert tuple(world.brokers[1].metadata[T0].offline_replicas) == (2,)
    assert world.tree.names("/log_dir_event_notification") == []


# ---------------------------------------------------------------------- deletion


def test_a_topic_is_deleted_everywhere(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2], [2, 3]])
    world.create_topic("u", [[1, 2]])
    world.write(Create(deletion_path("t")), Create(deletion_path("unknown")))
    assert world.tree.names("/brokers/topics") == ["u"]
    assert world.tree.value(topic_config_path("t")) is None
    assert world.tree.names("/admin/delete_topics") == []
    assert world.brokers[2].stopped == {T0: True, T1: True}
    assert T0 not in world.brokers[3].metadata
    world.check()
    world.create_topic("t", [[3, 1]])
    assert world.stored("t").leader == 3


def test_a_deletion_waits_for_a_broker_that_is_gone(world: RestingWorld) -> None:
    world.create_topic("t", [[1, 2]])
    world.kill_broker(2)
    world.write(Create(deletion_path("t")))
    assert world.tree.names("/brokers/topics") == ["t"]
    statistics = world.controllers[1].statistics()
    assert statistics.gauges.topics_to_delete_count == 1
    assert statistics.topics_ineligible_to_delete_count == 1
    assert statistics.gauges.offline_partitions_count == 0
    world.start_broker(2)
    assert world.tree.names("/brokers/topics") == []
    assert world.brokers[2].stopped[T0]


def test_a_deletion_that_fails_is_tried_again_when_the_broker_comes_back(
    world: RestingWorld,
) -> None:
    world.create_topic("t", [[1, 2]])
    world.brokers[2].undeletable = {T0}
    world.write(Create(deletion_path("t")))
    assert world.tree.names("/brokers/topics") == ["t"]
    world.brokers[2].undeletable = set()
    world.bounce_broker(2)
    assert world.tree.names("/brokers/topics") == []


def test_deletions_may_be_switched_off() -> None:
    world = RestingWorld()
    world.start_broker(1)
    world.create_topic("t", [[1]])
    world.start_controller(1, controller_settings(1, delete_topic_enable=False))
    world.write(Create(deletion_path("t")))
    assert world.tree.names("/admin/delete_topics") == []
    assert world.tree.names("/brokers/topics") == ["t"]
    world.check()


# ---------------------------------------------------------------------- producer ids


def test_producer_ids_are_handed_out_in_blocks(world: RestingWorld) -> None:
    controller = world.controllers[1]
    epoch = world.brokers[2].epoch
    assert world.ask(controller.requests.allocate_producer_ids(2, epoch)) == (0, 1000)
    assert world.ask(controller.requests.allocate_producer_ids(2, epoch)) == (1000, 1000)
    assert world.tree.value("/latest_producer_id_block") == (
        b'{"version":1,"broker":2,"block_start":"1000","block_end":"1999"}'
    )
    for broker_id, its_epoch, code in (
        (2, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        (9, epoch, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ):
        with pytest.raises(KafkaError) as caught:
            world.ask(controller.requests.allocate_producer_ids(broker_id, its_epoch))
        assert caught.value.code is code
    last = encode_producer_id_block(2, 0, 2**63 - 1001)
    world.write(Put("/latest_producer_id_block", last))
    block = world.ask(controller.requests.allocate_producer_ids(2, epoch))
    assert block == (2**63 - 1000, 1000)
    with pytest.raises(KafkaError, match="all producer ids are used up"):
        world.ask(controller.requests.allocate_producer_ids(2, epoch))


# ---------------------------------------------------------------------- brokers that do not answer


def test_requests_are_sent_until_they_are_answered(world: RestingWorld) -> None:
    world.brokers[2].silent = True
    world.create_topic("t", [[1, 2]])
    world.scheduler.advance(10)
    assert T0 not in world.brokers[2].replicas
    world.brokers[2].silent = False
    world.scheduler.advance(1)
    assert world.brokers[2].replicas[T0].leader == 1
