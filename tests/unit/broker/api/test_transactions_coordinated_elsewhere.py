"""Produce and TxnOffsetCommit in transactions whose coordinator is another broker (KIP-890)."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.api.produce import ProduceHandler
from broker.coordinator.group.data.values import (
    CommitRequest,
    PartitionCommit,
    TransactionalCommit,
)
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.gate import TransactionGate
from broker.coordinator.transaction.state import VERSION_2
from broker.coordinator.transaction.verification import Guards, RemoteCoordinators
from broker.coordinator.transactional_commits import TransactionalCommits, TransactionRefused
from broker.network.connection_work import is_parked
from broker.peers.peer import PeerError
from protocol.errors import ErrorCode, KafkaError
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC, TopicPartition
from storage.waits import at_once
from tests.support.api_calls import context
from tests.support.begun import Begun, begin
from tests.support.broker_bench import Bench, batch
from tests.support.fake_peers import FakePeer, answering, image_of
from tests.support.group_harness import GroupHarness
from tests.support.real_bench import RealBench
from tests.support.refusals import code_of
from tests.support.transaction_harness import T0, T1, TransactionHarness
from tests.unit.broker.api.test_produce import request

OWNER = Producer(7, 3)
PRODUCE = 0


class Elsewhere:
    """A coordinator of transactions on broker 2; this is broker 1."""

    def __init__(self) -> None:
        self.peer = FakePeer(answering({}))
        self.guards = Guards()
        self.asking: list[Begun[None]] = []
        """The questions to the other broker, which run beside the request."""
        self.remote = RemoteCoordinators(
            image_of({TRANSACTION_TOPIC: [2]}),
            1,
            lambda _: 0,
            lambda _: self.peer,
            self.guards,
            lambda make: self.asking.append(begin(make())),
        )

    def answer(self) -> None:
        """Give the answers that were held back."""
        assert self.peer.held is not None
        for signal in self.peer.held:
            signal.fire()
        assert all(one.done for one in self.asking)


class Producing(Elsewhere):
    def __init__(self, *, verify: bool = True, bench: Any = None) -> None:
        super().__init__()
        self.bench = bench or Bench()
        self.partitions: list[Any] = self.bench.topic(partitions=2)
        self.transactions = TransactionHarness(verify_partitions=verify)
        self.handler = ProduceHandler(
            self.bench.replicas, TransactionGate(self.transactions.coordinator, self.remote)
        )

    def send(self, *indexes: int, sequence: int = 0, version: int = 11) -> Begun[Any]:
        records = batch(
            transactional=True,
            producer_id=OWNER.producer_id,
            producer_epoch=OWNER.producer_epoch,
            base_sequence=sequence,
        )
        parsed = request(records, indexes=indexes, transactional_id="id", version=version)
        return begin(self.handler(context(PRODUCE, version), parsed))

    def ends(self) -> list[int]:
        return [partition.log.log_end_offset for partition in self.partitions]


@pytest.fixture
def here() -> Producing:
    return Producing()


def codes(begun: Begun[Any]) -> list[int]:
    return [one.error_code for topic in begun.reply.responses for one in topic.partition_responses]


def test_a_batch_is_appended_when_the_coordinator_has_admitted_it(here: Producing) -> None:
    here.peer.held = []
    sent = here.send(0, 1)
    assert is_parked(sent.waits_for), "it holds no worker"
    assert here.ends() == [0, 0]
    here.answer()
    assert codes(sent) == [0, 0]
    assert here.ends() == [1, 1]
    assert not here.guards._guarded
    [(_, request)] = here.peer.asked
    assert request.transactions[0].verify_only


def test_each_partition_is_admitted_or_refused_by_itself(here: Producing) -> None:
    here.peer.answer = answering({T1: ErrorCode.TRANSACTION_ABORTABLE})
    assert codes(here.send(0, 1)) == [0, ErrorCode.TRANSACTION_ABORTABLE]
    assert codes(here.send(1, version=9)) == [ErrorCode.INVALID_TXN_STATE]
    assert here.ends() == [1, 0]
    counted = at_once(here.transactions.coordinator.statistics()).counters
    assert (counted.verifications, counted.failed_verifications) == (3, 2)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_what_passes_makes_clients_try_again(here: Producing, code: ErrorCode) -> None:
    here.peer.answer = answering({T0: code})
    assert codes(here.send(0)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    here.peer.answer = lambda key, request: PeerError("gone")
    assert codes(here.send(0)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert here.ends() == [0, 0]


def test_a_batch_behind_a_refused_one_is_refused_too(here: Producing) -> None:
    here.peer.answer = lambda key, request: PeerError("gone")
    here.send(0)
    here.peer.answer = answering({})
    assert codes(here.send(0, sequence=1)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(here.send(0)) == [0]


def test_a_marker_between_answer_and_append_refuses_the_batch(here: Producing) -> None:
    here.peer.held = []
    sent = here.send(0, 1)
    here.guards.on_marker(T0, OWNER.producer_id)
    here.answer()
    assert codes(sent) == [ErrorCode.INVALID_TXN_STATE, 0]
    assert here.ends() == [0, 1]


def test_nobody_is_asked_while_the_transaction_is_open_in_the_partition() -> None:
    here = Producing(bench=RealBench())
    assert codes(here.send(0)) == [0]
    assert codes(here.send(0, sequence=1)) == [0]
    assert here.ends() == [2, 0]
    assert len(here.peer.asked) == 1


def test_nobody_is_asked_if_verification_is_off() -> None:
    here = Producing(verify=False)
    assert codes(here.send(0)) == [0]
    assert here.peer.asked == []


def test_a_client_that_leaves_leaves_nothing_behind(here: Producing) -> None:
    here.peer.held = []
    sent = here.send(0)
    sent.leave()
    assert not here.guards._guarded
    assert here.ends() == [0, 0]


def test_v12_adds_the_partitions_at_the_other_broker_and_verifies_them(here: Producing) -> None:
    assert codes(here.send(0, version=12)) == [0]
    assert [one.transactions[0].verify_only for _, one in here.peer.asked] == [False, True]
    here.peer.answer = answering({T1: ErrorCode.INVALID_PRODUCER_ID_MAPPING})
    assert codes(here.send(1, version=12)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    assert here.ends() == [1, 0]


class Committing(Elsewhere):
    def __init__(self) -> None:
        super().__init__()
        self.groups = GroupHarness()
        self.transactions = TransactionHarness()
        self.led = True
        self.commits = TransactionalCommits(
            self.groups.coordinator, self.transactions.coordinator, self.remote, self._find
        )
        self.offsets = TopicPartition(OFFSETS_TOPIC, self.groups.coordinator.partition_for("g"))

    def _find(self, tp: TopicPartition) -> Any:
        assert tp == self.offsets
        if not self.led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return SimpleNamespace(topic_partition=tp, leader_epoch=0)

    def commit(self, version: int = 0, *, meanwhile: bool = False) -> Any:
        verified = at_once(self.commits.verified("id", OWNER, "g", version=version))
        assert verified is not None
        if meanwhile:
            self.guards.on_marker(self.offsets, OWNER.producer_id)
        request = TransactionalCommit(
            commit=CommitRequest(
                group_id="g", partitions=(PartitionCommit(topic="t", partition=0, offset=7),)
            ),
            producer_id=OWNER.producer_id,
            producer_epoch=OWNER.producer_epoch,
        )
        try:
            return at_once(self.commits.commit("id", request, version=version, verified=verified))
        finally:
            verified.release()


@pytest.mark.parametrize(("version", "verifies"), [(0, True), (VERSION_2, False)])
def test_offsets_are_written_when_their_partition_belongs_to_the_transaction(
    version: int, verifies: bool
) -> None:
    here = Committing()
    assert here.commit(version) is ErrorCode.NONE
    [(_, request)] = here.peer.asked
    [asked] = request.transactions
    assert asked.verify_only is verifies
    assert [(one.name, list(one.partitions)) for one in asked.topics] == [
        (OFFSETS_TOPIC, [here.offsets.partition])
    ]
    assert len(here.groups.log.all_records()) == 1
    assert not here.guards._guarded


def test_offsets_that_the_coordinator_refuses_are_not_written() -> None:
    here = Committing()
    here.peer.answer = answering({here.offsets: ErrorCode.TRANSACTION_ABORTABLE})
    with pytest.raises(TransactionRefused, match="Transaction abortable"):
        here.commit()
    with pytest.raises(TransactionRefused):
        here.commit(meanwhile=True)
    assert here.groups.log.all_records() == []


def test_offsets_of_a_group_that_is_not_coordinated_here() -> None:
    here = Committing()
    here.led = False
    assert code_of(here.commit) is ErrorCode.NOT_COORDINATOR
    assert here.peer.asked == []
