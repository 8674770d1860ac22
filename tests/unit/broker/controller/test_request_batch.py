"""The cases of Kafka's ControllerChannelManagerTest: which broker gets which request."""

from typing import Any

import pytest

from broker.cluster.image import BrokerImage
from broker.cluster.leader_and_isr import LeaderAndIsr
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.controller import request_batch
from broker.controller.cluster_state import ControllerState, LiveBroker
from broker.controller.request_batch import Outgoing, RequestBatch
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.update_metadata import UpdateMetadataRequest
from protocol.types import TopicPartition
from storage.waits import at_once

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def state() -> ControllerState:
    """Brokers 1, 2 and 3; topics t and u on them."""
    made = ControllerState()
    made.epoch = 7
    for broker_id in (1, 2, 3):
        endpoints = (
            Listener(name="IN", host=f"b{broker_id}", port=1, protocol="SASL_SSL"),
            Listener(name="OUT", host=f"c{broker_id}", port=2, protocol="PLAINTEXT"),
        )
        image = BrokerImage(broker_id=broker_id, endpoints=endpoints, rack=f"r{broker_id}")
        made.brokers[broker_id] = LiveBroker(image, 100 + broker_id)
    for name in ("t", "u"):
        made.add_topic(name, name.encode() * 16)
    for tp, replicas in ((T0, (1, 2)), (T1, (2, 3)), (U0, (3, 1))):
        made.set_assignment(tp, ReplicaAssignment(replicas))
        made.set_leadership(tp, LeaderAndIsr(replicas[0], replicas, 4, 5, 6))
    return made


def sent(batch: RequestBatch) -> list[tuple[int, ApiKey, Any, Outgoing]]:
    """The requests, each after a way over the wire."""
    found = []
    for outgoing in at_once(batch.requests()):
        codec = type(outgoing.message).codec(outgoing.version)
        request: Any = codec.parse(codec.build(outgoing.message))
        found.append((outgoing.broker_id, outgoing.key, request, outgoing))
    return found


def of(batch: RequestBatch, key: ApiKey) -> dict[int, Any]:
    return {broker_id: request for broker_id, one, request, _ in sent(batch) if one is key}


@pytest.fixture
def batch(state: ControllerState) -> RequestBatch:
    state.populated = {broker_id: known.epoch for broker_id, known in state.brokers.items()}
    return RequestBatch(state, 1, "IN")


def test_a_leadership_goes_to_replicas_and_what_clients_see_to_all(
    batch: RequestBatch, state: ControllerState
) -> None:
    state.set_assignment(T0, ReplicaAssignment((1, 2, 3), (3,), (2,)))
    state.set_leadership(T0, LeaderAndIsr(2, (1, 2), 4, 5, 6, recovering=True))
    batch.add_leadership((1, 2), T0, is_new=False)
    batch.add_leadership((3,), T0, is_new=True)
    requests = sent(batch)
    assert [(broker_id, key) for broker_id, key, _, _ in requests] == [
        *((broker_id, ApiKey.LEADER_AND_ISR) for broker_id in (1, 2, 3)),
        *((broker_id, ApiKey.UPDATE_METADATA) for broker_id in (1, 2, 3)),
    ]
    assert [outgoing.version for *_, outgoing in requests] == [7, 7, 7, 8, 8, 8]
    _, _, lead, _ = requests[2]
    assert (lead.controller_id, lead.controller_epoch, lead.broker_epoch) == (1, 7, 103)
    assert (lead.is_k_raft_controller, lead.type) == (False, 0)
    (topic,) = lead.topic_states
    assert (topic.topic_name, topic.topic_id) == ("t", b"t" * 16)
    (one,) = topic.partition_states
    assert (one.controller_epoch, one.leader, one.leader_epoch, one.partition_epoch) == (6, 2, 4, 5)
    assert (list(one.isr), list(one.replicas)) == ([1, 2], [1, 2, 3])
    assert (list(one.adding_replicas), list(one.removing_replicas)) == ([3], [2])
    assert (one.is_new, one.leader_recovery_state) == (True, 1)
    assert [(b.broker_id, b.host_name, b.port) for b in lead.live_leaders] == [(2, "b2", 1)]
    assert not requests[0][2].topic_states[0].partition_states[0].is_new
    _, _, told, _ = requests[3]
    assert [(b.id, b.rack) for b in told.live_brokers] == [(1, "r1"), (2, "r2"), (3, "r3")]
    endpoints = told.live_brokers[0].endpoints
    assert [(e.port, e.host, e.listener, e.security_protocol) for e in endpoints] == [
        (1, "b1", "IN", 3),
        (2, "c1", "OUT", 0),
    ]
    (seen,) = told.topic_states[0].partition_states
    assert (seen.controller_epoch, seen.leader, seen.leader_epoch, seen.zk_version) == (6, 2, 4, 5)
    assert (list(seen.isr), list(seen.replicas), list(seen.offline_replicas)) == (
        [1, 2],
        [1, 2, 3],
        [],
    )


def test_new_and_to_be_deleted_stay_so_within_a_step(
    batch: RequestBatch, state: ControllerState
) -> None:
    for is_new in (True, False):
        batch.add_leadership((1,), T0, is_new=is_new)
    for delete in (True, False):
        batch.add_stop(2, T0, delete=delete)
    requests = sent(batch)
    assert requests[0][2].topic_states[0].partition_states[0].is_new
    broker_id, key, stop, outgoing = requests[-1]
    assert (broker_id, key, outgoing.version) == (2, ApiKey.STOP_REPLICA, 4)
    (one,) = stop.topic_states[0].partition_states
    assert (one.leader_epoch, one.delete_partition) == (4, True)
    assert outgoing.deletes == {T0}


@pytest.mark.parametrize("delete", [True, False])
def test_the_epoch_of_a_stop(batch: RequestBatch, state: ControllerState, delete: bool) -> None:
    """-2 for a topic to be deleted, -1 for a partition without a state, else its own."""
    state.set_assignment(TopicPartition("t", 9), ReplicaAssignment((1,)))
    state.queue_deletion(["u"])
    for tp in (T0, TopicPartition("t", 9), U0):
        batch.add_stop(1, tp, delete=delete)
    ((_, _, stop, outgoing),) = sent(batch)
    epochs = {
        (topic.topic_name, one.partition_index): one.leader_epoch
        for topic in stop.topic_states
        for one in topic.partition_states
    }
    assert epochs == {("t", 0): 4, ("t", 9): -1, ("u", 0): -2}
    assert bool(outgoing.deletes) is delete


def test_only_registered_brokers_are_told(batch: RequestBatch, state: ControllerState) -> None:
    del state.brokers[3]
    state.shutting_down.add(2)
    batch.add_leadership((2, 3), T1, is_new=False)
    batch.add_stop(3, T1, delete=True)
    batch.add_stop(-1, T1, delete=True)
    batch.add_leadership((-1,), T1, is_new=False)
    assert [(broker_id, key) for broker_id, key, *_ in sent(batch)] == [
        (2, ApiKey.LEADER_AND_ISR),
        (1, ApiKey.UPDATE_METADATA),
        (2, ApiKey.UPDATE_METADATA),
    ]


def test_clients_see_which_replicas_are_offline(
    batch: RequestBatch, state: ControllerState
) -> None:
    del state.brokers[2]
    state.offline_dirs[3] = {T1}
    state.shutting_down.add(1)
    batch.add_metadata(state.brokers, (T0, T1, U0))
    told = of(batch, ApiKey.UPDATE_METADATA)[3]
    offline = {
        (topic.topic_name, one.partition_index): list(one.offline_replicas)
        for topic in told.topic_states
        for one in topic.partition_states
    }
    assert offline == {("t", 0): [1, 2], ("t", 1): [2, 3], ("u", 0): [1]}


def test_a_topic_to_be_deleted_has_the_leader_minus_two(
    batch: RequestBatch, state: ControllerState
) -> None:
    state.queue_deletion(["t"])
    batch.add_metadata((1,), (T0,))
    (one,) = of(batch, ApiKey.UPDATE_METADATA)[1].topic_states[0].partition_states
    assert (one.leader, one.leader_epoch, one.zk_version, list(one.isr)) == (-2, 0, 0, [1, 2])


def test_what_has_no_leader_yet_is_told_to_nobody(
    batch: RequestBatch, state: ControllerState
) -> None:
    tp = TopicPartition("t", 9)
    state.set_assignment(tp, ReplicaAssignment((1,)))
    batch.add_leadership((1,), tp, is_new=True)
    requests = sent(batch)
    assert {key for _, key, *_ in requests} == {ApiKey.UPDATE_METADATA}
    assert all(not request.topic_states for _, _, request, _ in requests)
    assert len(requests) == 3  # each broker gets the living brokers nevertheless


def test_a_state_that_changes_in_a_step_is_told_once_as_it_is(
    batch: RequestBatch, state: ControllerState
) -> None:
    batch.add_leadership((1, 2), T0, is_new=False)
    state.set_leadership(T0, LeaderAndIsr(2, (2,), 9, 9, 7))
    batch.add_leadership((1, 2), T0, is_new=False)
    (one,) = of(batch, ApiKey.LEADER_AND_ISR)[1].topic_states[0].partition_states
    assert (one.leader, one.leader_epoch, list(one.isr)) == (2, 9, [2])


@pytest.mark.parametrize(("most", "parts"), [(2, [["t"], ["u"]]), (3, [["t", "u"]])])
def test_many_partitions_are_split_by_topic(
    batch: RequestBatch,
    state: ControllerState,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    parts: list[list[str]],
) -> None:
    monkeypatch.setattr(request_batch, "MOST_METADATA", most)
    monkeypatch.setattr(request_batch, "MOST_LEADERSHIPS", 1)
    for tp in (T0, T1, U0):
        batch.add_leadership(state.assignment(tp).replicas, tp, is_new=False)
    requests = sent(batch)
    led = [
        (broker_id, [topic.topic_name for topic in request.topic_states])
        for broker_id, key, request, _ in requests
        if key is ApiKey.LEADER_AND_ISR
    ]
    assert led == [(1, ["t"]), (1, ["u"]), (2, ["t"]), (3, ["t"]), (3, ["u"])]
    told = [
        (broker_id, [topic.topic_name for topic in request.topic_states])
        for broker_id, key, request, _ in requests
        if key is ApiKey.UPDATE_METADATA
    ]
    assert told == [(one, names) for one in (1, 2, 3) for names in parts]


def test_the_first_leader_and_isr_of_a_registration_is_whole(
    state: ControllerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_batch, "MOST_LEADERSHIPS", 1)
    state.populated = {1: state.brokers[1].epoch, 3: state.brokers[3].epoch - 1}

    def led() -> list[tuple[int, list[str]]]:
        batch = RequestBatch(state, 1, "IN")
        for tp in (T0, T1, U0):
            batch.add_leadership(state.assignment(tp).replicas, tp, is_new=False)
        return [
            (broker_id, [topic.topic_name for topic in request.topic_states])
            for broker_id, key, request, _ in sent(batch)
            if key is ApiKey.LEADER_AND_ISR
        ]

    assert led() == [(1, ["t"]), (1, ["u"]), (2, ["t"]), (3, ["t", "u"])]
    assert led() == [(1, ["t"]), (1, ["u"]), (2, ["t"]), (3, ["t"]), (3, ["u"])]


def test_topics_are_encoded_once_for_all_brokers(
    batch: RequestBatch, state: ControllerState
) -> None:
    batch.add_metadata(state.brokers, (T0, U0))
    requests = [one.message for one in at_once(batch.requests())]
    assert all(isinstance(one, UpdateMetadataRequest) for one in requests)
    first, second, third = (list(one.topic_states) for one in requests)  # type: ignore[attr-defined]
    assert all(a is b is c for a, b, c in zip(first, second, third, strict=True))
