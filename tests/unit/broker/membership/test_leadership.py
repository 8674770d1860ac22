"""Orders of the controller: which are carried out, in what order, and what they come to."""

import pytest

from broker.cluster.image import PartitionImage
from broker.membership.controller_fence import ControllerFence
from broker.membership.leadership import Leadership, verdict
from broker.membership.orders import Sender, StopOrder, TopicOrders
from broker.membership.stopping import Stopping
from broker.membership.stopping import verdict as stop_verdict
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.types import ZERO_UUID, TopicPartition
from storage.errors import StorageError
from storage.waits import at_once, together
from tests.support.cluster_fakes import FakeCoordinator
from tests.support.membership_fakes import (
    ID,
    OTHER_ID,
    FakeTopicConfigs,
    Hosted,
    ObeyingReplicas,
    PreparedLogs,
    code_of,
    partition,
)

ME = 1
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
STALE = ErrorCode.STALE_CONTROLLER_EPOCH
LEADS = ErrorCode.NONE
FOLLOWS = ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("hosted", "topic_id", "order", "code"),
    [
        (None, ID, partition(1, 0), None),
        (Hosted(4), ID, partition(2, 5), None),
        (Hosted(4, unavailable=FOLLOWS), ID, partition(1, 5), None),
        (Hosted(4, unavailable=STORAGE), ID, partition(1, 5), STORAGE),
        (Hosted(4, unavailable=STORAGE), OTHER_ID, partition(1, 3), STORAGE),
        (Hosted(4), OTHER_ID, partition(1, 5), ErrorCode.INCONSISTENT_TOPIC_ID),
        (Hosted(4), OTHER_ID, partition(1, 3), ErrorCode.INCONSISTENT_TOPIC_ID),
        (Hosted(4), ZERO_UUID, partition(1, 5), None),
        (Hosted(4, ZERO_UUID), ID, partition(1, 4), None),
        (Hosted(4, ZERO_UUID), ID, partition(1, 3), STALE),
        (Hosted(4, ZERO_UUID), ZERO_UUID, partition(1, 4), STALE),
        (Hosted(4), ID, partition(1, 4), STALE),
        (Hosted(4), ID, partition(1, 3), STALE),
        (Hosted(4), ID, partition(2, 3, (2, 3)), STALE),
        (Hosted(4), ID, partition(2, 5, (2, 3)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ID, partition(2, 0, (2, 3)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ID, partition(-1, 0), None),
    ],
)
def test_an_order_is_judged_by_disk_topic_id_epoch_and_replicas(
    hosted: Hosted | None, topic_id: bytes, order: PartitionImage, code: ErrorCode | None
) -> None:
    assert verdict(hosted, topic_id, order, ME) is code


@pytest.mark.parametrize(
    ("hosted", "order", "code"),
    [
        (None, StopOrder(0, True), None),
        (Hosted(4), StopOrder(4, False), None),
        (Hosted(4), StopOrder(5, True), None),
        (Hosted(4), StopOrder(3, True), ErrorCode.FENCED_LEADER_EPOCH),
        (Hosted(4), StopOrder(-1, True), None),
        (Hosted(4), StopOrder(-2, True), None),
        (Hosted(4, unavailable=STORAGE), StopOrder(5, True), STORAGE),
        (Hosted(4, unavailable=FOLLOWS), StopOrder(5, False), None),
    ],
)
def test_a_stop_is_judged_by_disk_and_epoch(
    hosted: Hosted | None, order: StopOrder, code: ErrorCode | None
) -> None:
    assert stop_verdict(hosted, order) is code


class Member:
    """A broker that obeys."""

    def __init__(self) -> None:
        self.fence = ControllerFence()
        self.fence.broker_epoch = 10
        self.fence.controller_epoch = 3
        self.replicas = ObeyingReplicas()
        self.logs = PreparedLogs()
        self.configs = FakeTopicConfigs()
        self.coordinator = FakeCoordinator()
        coordinators = {"__consumer_offsets": self.coordinator}
        broker = BrokerConfig.parse({"broker.id": "1"})
        self.leadership = Leadership(
            fence=self.fence,
            replicas=self.replicas,
            carry_out=self.replicas.apply,
            logs=self.logs,
            configs=self.configs,
            resolve=lambda name, own: TopicConfig.from_broker(broker, own),
            coordinators=coordinators,
            broker_id=ME,
        )
        self.stopping = Stopping(
            fence=self.fence, replicas=self.replicas, coordinators=coordinators
        )

    def order(self, topics: dict[str, TopicOrders], epoch: int = 3, broker_epoch: int = 10):
        return at_once(self.leadership.obey(Sender(2, epoch, broker_epoch), topics))


@pytest.fixture
def member() -> Member:
    return Member()


def orders(*partitions: PartitionImage, new: set[int] | None = None) -> TopicOrders:
    return TopicOrders(topic_id=ID, partitions=dict(enumerate(partitions)), new=new or set())


def test_each_partition_is_led_or_followed_with_the_topics_own_configs(member: Member) -> None:
    codes = member.order(
        {"t": orders(partition(1, 0), partition(2, 0), new={0}), "u": orders(partition(-1, 0))}
    )
    assert codes == {"t": {0: LEADS, 1: LEADS}, "u": {0: LEADS}}
    assert member.replicas.applied == [
        ("t", 0, True, 1),
        ("t", 1, False, 2),
        ("u", 0, False, -1),
    ]
    assert [config.retention_ms for config in member.replicas.configs if config] == [7, 604800000]
    assert member.configs.learned == [["t", "u"]]
    assert member.logs.prepared == [
        TopicPartition("t", 0),
        TopicPartition("t", 1),
        TopicPartition("u", 0),
    ]
    assert member.logs.discarded == 1


def test_only_refused_partitions_are_left_alone(member: Member) -> None:
    member.replicas.hosted["t", 0] = Hosted(9)
    member.replicas.fail["t", 2] = StorageError("/d", "broken")
    codes = member.order({"t": orders(partition(1, 5), partition(1, 5), partition(1, 5))})
    assert codes == {"t": {0: STALE, 1: LEADS, 2: STORAGE}}
    assert member.replicas.applied == [("t", 1, False, 1)]


def test_no_log_is_prepared_that_may_lie_in_a_failed_directory(member: Member) -> None:
    member.logs.offline_dirs = ("/failed",)
    member.order({"t": orders(partition(1, 0), partition(1, 0), new={1})})
    assert member.logs.prepared == [TopicPartition("t", 1)]


def test_coordinators_are_told_who_leads_their_partitions(member: Member) -> None:
    member.replicas.fail["__consumer_offsets", 2] = StorageError("/d", "broken")
    member.order({"__consumer_offsets": orders(partition(1, 4), partition(2, 4), partition(1, 4))})
    assert member.coordinator.elected == [(0, 4)]
    assert member.coordinator.resigned == [1, 2]


def test_a_coordinator_resigns_before_the_controller_hears_that_its_disk_failed(
    member: Member,
) -> None:
    """Another broker leads then: offsets that it remembers would be outdated."""
    member.replicas.hosted["__consumer_offsets", 0] = Hosted(4, unavailable=STORAGE)
    codes = member.order({"__consumer_offsets": orders(partition(1, 4))})
    assert codes == {"__consumer_offsets": {0: STORAGE}}
    assert member.coordinator.resigned == [0]


def test_late_requests_do_nothing(member: Member) -> None:
    topics = {"t": orders(partition(1, 0))}
    stops = {TopicPartition("t", 0): StopOrder(5, True)}
    for sender, code in (
        (Sender(2, 3, 9), ErrorCode.STALE_BROKER_EPOCH),
        (Sender(2, 2, 10), STALE),
    ):
        assert at_once(code_of(member.leadership.obey(sender, topics))) is code
        assert at_once(code_of(member.stopping.obey(sender, stops))) is code
    assert not member.replicas.applied
    assert not member.replicas.stopped


def test_epochs_that_are_newer_or_unknown_pass_and_a_newer_controller_is_remembered(
    member: Member,
) -> None:
    member.order({"t": orders(partition(1, 0))}, epoch=5, broker_epoch=11)
    member.order({"t": orders(partition(1, 1))}, epoch=5, broker_epoch=-1)
    assert member.fence.controller_epoch == 5
    assert len(member.replicas.applied) == 2
    sender = Sender(2, 4, 10)
    work = member.leadership.obey(sender, {"t": orders(partition(1, 2))})
    assert at_once(code_of(work)) is STALE


def test_orders_are_carried_out_one_at_a_time(member: Member) -> None:
    inside: list[int] = []

    def during() -> None:
        inside.append(member.fence.controller_epoch)

    member.replicas.during = during
    at_once(
        together(
            member.leadership.obey(Sender(2, 3, 10), {"t": orders(*[partition(1, 0)] * 5)}),
            member.leadership.obey(Sender(3, 4, 10), {"t": orders(*[partition(1, 1)] * 5)}),
        )
    )
    assert inside == [3] * 5 + [4] * 5


def test_a_stopped_replica_is_resigned_by_its_coordinator_when_it_is_deleted(
    member: Member,
) -> None:
    for index in range(4):
        member.replicas.hosted["__consumer_offsets", index] = Hosted(4)
    tps = [TopicPartition("__consumer_offsets", index) for index in range(4)]
    member.replicas.fail[tps[3]] = StorageError("/d", "broken")
    codes = at_once(
        member.stopping.obey(
            Sender(2, 3, 10),
            {
                tps[0]: StopOrder(4, False),
                tps[1]: StopOrder(-2, True),
                tps[2]: StopOrder(3, True),
                tps[3]: StopOrder(4, True),
            },
        )
    )
    assert list(codes.values()) == [LEADS, LEADS, ErrorCode.FENCED_LEADER_EPOCH, STORAGE]
    assert member.replicas.stopped == [(tps[0], False), (tps[1], True)]
    assert member.coordinator.resigned == [1]
