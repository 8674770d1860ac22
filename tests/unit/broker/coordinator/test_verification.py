"""Transactions with a coordinator on another broker: question, answer, what comes between."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.verification import Guards, RemoteCoordinators, Verified
from broker.peers.peer import PeerError
from broker.replication.partition import Partition
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TRANSACTION_TOPIC, TopicPartition
from storage.waits import at_once
from tests.support.fake_peers import FakePeer, answering, image_of, set_leaders

ID = "id"
PRODUCER = Producer(5, 2)
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def partition(tp: TopicPartition) -> Any:
    return SimpleNamespace(topic_partition=tp, leader_epoch=3)


class Lab:
    def __init__(self, leader: int = 2) -> None:
        self.image = image_of({TRANSACTION_TOPIC: [-1, leader]})
        self.peer = FakePeer(answering({}))
        self.guards = Guards()
        self.remote = RemoteCoordinators(
            self.image,
            1,
            lambda transactional_id: 1,
            lambda broker_id: self.peer if broker_id == 2 else None,
            self.guards,
            lambda make: at_once(make()),
        )

    def ask(self, *partitions: TopicPartition, **more: bool) -> dict[TopicPartition, ErrorCode]:
        return at_once(self.remote.ask(ID, PRODUCER, partitions, **more))

    def verified(self, *partitions: Partition) -> Verified:
        return self.remote.guard(PRODUCER, partitions)


@pytest.fixture
def lab() -> Lab:
    return Lab()


def refusal(verified: Verified, tp: TopicPartition, producer: Producer = PRODUCER) -> ErrorCode:
    try:
        verified.check(tp, producer)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_the_coordinator_is_the_leader_in_the_image() -> None:
    lab = Lab(leader=1)
    assert lab.remote.is_here(ID)
    for leader in (2, -1):
        set_leaders(lab.image, TRANSACTION_TOPIC, [1, leader])
        assert not lab.remote.is_here(ID)
    lab.image.remove_topic(TRANSACTION_TOPIC)
    assert not lab.remote.is_here(ID)


def test_the_coordinator_is_asked_about_all_partitions_at_once(lab: Lab) -> None:
    lab.peer.answer = answering({T1: ErrorCode.TRANSACTION_ABORTABLE})
    assert lab.ask(T0, U0, T1) == {
        T0: ErrorCode.NONE,
        T1: ErrorCode.TRANSACTION_ABORTABLE,
        U0: ErrorCode.NONE,
    }
    [(_, request)] = lab.peer.asked
    [asked] = request.transactions
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == (ID, 5, 2)
    assert asked.verify_only
    assert {one.name: list(one.partitions) for one in asked.topics} == {"t": [0, 1], "u": [0]}
    lab.ask(T0, verify_only=False)
    assert not lab.peer.asked[1][1].transactions[0].verify_only


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda key, request: PeerError("gone"), ErrorCode.NETWORK_EXCEPTION),
        (
            answering({}, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ),
        (answering({}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_what_becomes_of_no_answer_and_of_refusals(
    lab: Lab, answer: Callable[[ApiKey, Any], Any], code: ErrorCode
) -> None:
    lab.peer.answer = answer
    assert lab.ask(T0, T1) == {T0: code, T1: code}


@pytest.mark.parametrize("leader", [-1, 3])
def test_a_coordinator_that_cannot_be_reached(leader: int) -> None:
    assert Lab(leader).ask(T0) == {T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_a_partition_may_take_what_the_coordinator_has_admitted(lab: Lab) -> None:
    verified = lab.verified(partition(T0), partition(T1))
    verified.answered({T0: ErrorCode.NONE, T1: ErrorCode.PRODUCER_FENCED})
    assert refusal(verified, T0) is ErrorCode.NONE
    assert refusal(verified, T1) is ErrorCode.PRODUCER_FENCED
    assert refusal(verified, U0) is ErrorCode.INVALID_TXN_STATE, "nobody was asked about it"
    assert refusal(verified, T0, Producer(5, 3)) is ErrorCode.INVALID_TXN_STATE


def test_a_marker_in_between_refuses_the_append(lab: Lab) -> None:
    verified = lab.verified(partition(T0), partition(T1))
    lab.guards.on_marker(T0, 5)
    lab.guards.on_marker(T1, 6)  # of another producer
    verified.answered({T0: ErrorCode.NONE, T1: ErrorCode.NONE})
    assert refusal(verified, T0) is ErrorCode.INVALID_TXN_STATE
    assert refusal(verified, T1) is ErrorCode.NONE
    lab.guards.on_marker(T1, 5)
    assert refusal(verified, T1) is ErrorCode.INVALID_TXN_STATE, "up to the append"


def test_another_leadership_in_between_refuses_the_append(lab: Lab) -> None:
    one = partition(T0)
    verified = lab.verified(one)
    verified.answered({T0: ErrorCode.NONE})
    one.leader_epoch += 1
    assert refusal(verified, T0) is ErrorCode.INVALID_TXN_STATE


def test_nothing_is_watched_over_after_the_append(lab: Lab) -> None:
    first, second = lab.verified(partition(T0)), lab.verified(partition(T0), partition(T1))
    first.release()
    assert lab.guards._guarded
    lab.guards.on_marker(T1, 5)
    second.release()
    assert not lab.guards._guarded
