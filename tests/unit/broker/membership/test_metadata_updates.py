"""The image is what the controller says."""

import pytest

from broker.cluster.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from broker.membership.controller_fence import ControllerFence
from broker.membership.image_changes import ImageChanges
from broker.membership.metadata_updates import FIRST_NEWS_S, FIRST_TOPICS_S, MetadataUpdates
from broker.membership.orders import MetadataUpdate, Sender, TopicStates
from protocol.errors import ErrorCode
from protocol.types import ZERO_UUID
from storage.waits import Until, Work, at_once
from tests.support.manual_clock import ManualClock
from tests.support.membership_fakes import ID, OTHER_ID, FakeTopicConfigs, code_of, partition


class Member:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.image = MetadataImage()
        self.fence = ControllerFence()
        self.configs = FakeTopicConfigs()
        self.deleted: list[list[str]] = []
        self.updates = MetadataUpdates(
            fence=self.fence,
            image=self.image,
            configs=self.configs,
            changes=ImageChanges(self.clock),
            deleted=lambda names: self.deleted.append(list(names)),
        )

    def told(
        self,
        *,
        brokers: tuple[int, ...] = (1, 2),
        controller: int = 2,
        epoch: int = 1,
        **topics: TopicStates,
    ) -> None:
        update = MetadataUpdate(
            brokers={one: BrokerImage(broker_id=one, endpoints=(), rack="r") for one in brokers},
            topics=topics,
        )
        at_once(self.updates.obey(Sender(controller, epoch, -1), update))

    def topic(self) -> TopicImage:
        """The topic t, which the image has."""
        found = self.image.topic("t")
        assert found is not None
        return found


@pytest.fixture
def member() -> Member:
    return Member()


def states(partitions: dict[int, PartitionImage | None], topic_id: bytes = ID) -> TopicStates:
    return TopicStates(topic_id=topic_id, partitions=partitions)


def test_brokers_are_those_of_the_last_update_and_topics_stay(member: Member) -> None:
    member.told(t=states({0: partition(1, 0)}))
    member.told(brokers=(2, 3), controller=3, epoch=2)
    assert [broker.broker_id for broker in member.image.brokers()] == [2, 3]
    assert member.image.controller_id == 3
    assert member.topic().partitions == {0: partition(1, 0)}


def test_partitions_come_in_their_order_and_equal_ones_share_a_value(member: Member) -> None:
    member.told(t=states({2: partition(1, 0), 0: partition(1, 0)}))
    member.told(t=states({1: partition(2, 0), 2: partition(1, 1)}))
    topic = member.topic()
    assert list(topic.partitions) == [0, 1, 2]
    assert [one.leader_epoch for one in topic.partitions.values()] == [0, 0, 1]
    member.told(t=states({3: partition(1, 0)}))
    topic = member.topic()
    assert topic.partitions[0] is topic.partitions[3]


def test_a_topic_has_its_own_configs_which_are_read_when_it_is_new(member: Member) -> None:
    member.told(t=states({0: partition(1, 0)}))
    member.told(t=states({0: partition(2, 1)}))
    assert member.topic().config == {"retention.ms": "7"}
    assert member.configs.learned == [["t"], []]


def test_a_topic_is_gone_with_its_last_partition(member: Member) -> None:
    member.told(t=states({0: partition(1, 0), 1: partition(1, 0)}))
    member.told(t=states({0: None}))
    assert member.image.topic("t") is not None
    assert not member.deleted
    member.told(t=states({1: None}))
    assert member.image.topic("t") is None
    assert member.image.partition_count() == 0
    assert member.deleted == [["t"]]
    assert member.configs.forgotten == ["t"]


def test_what_was_never_known_is_not_told_to_be_gone(member: Member) -> None:
    member.told(t=states({0: None}))
    assert not member.deleted


def test_another_topic_of_the_name_takes_nothing_over(member: Member) -> None:
    member.told(t=states({0: partition(1, 5), 1: partition(1, 5)}))
    member.told(t=states({0: partition(1, 0)}, OTHER_ID))
    assert member.topic().partitions == {0: partition(1, 0)}
    assert member.image.topic_by_id(ID) is None
    assert member.image.topic_by_id(OTHER_ID) is member.topic()


def test_an_update_without_ids_keeps_the_topics_id(member: Member) -> None:
    member.told(t=states({0: partition(1, 0)}))
    member.told(t=states({0: partition(2, 1)}, ZERO_UUID))
    assert member.topic().topic_id == ID


def test_an_old_controller_is_not_listened_to(member: Member) -> None:
    member.told(epoch=4)
    sender = Sender(7, 3, -1)
    work = member.updates.obey(sender, MetadataUpdate(brokers={}, topics={}))
    assert at_once(code_of(work)) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert member.image.controller_id == 2
    assert member.image.brokers()
    member.fence.broker_epoch = 8
    work = member.updates.obey(Sender(7, 5, 7), MetadataUpdate(brokers={}, topics={}))
    assert at_once(code_of(work)) is ErrorCode.STALE_BROKER_EPOCH
    assert member.fence.controller_epoch == 4


# ---- the first news


def longest_wait(work: Work[None]) -> float | None:
    """Run it to its next wait, and return how long that may be; None: it has ended."""
    try:
        wait = work.send(None)
    except StopIteration:
        return None
    assert isinstance(wait, Until)
    return wait.seconds


def test_a_client_waits_for_the_first_topics(member: Member) -> None:
    client = member.updates.first_news()
    assert longest_wait(client) == FIRST_NEWS_S
    member.clock.advance(1)
    member.told()  # as a new controller does, before it tells of topics
    assert longest_wait(client) == FIRST_TOPICS_S
    member.clock.advance(FIRST_TOPICS_S / 2)
    member.told(t=states({0: partition(1, 0)}))
    assert longest_wait(client) is None
    assert longest_wait(member.updates.first_news()) is None


def test_a_client_waits_no_longer_than_it_is_worth() -> None:
    no_news_of_topics, no_controller = Member(), Member()
    no_news_of_topics.told()
    for member, longest in ((no_news_of_topics, FIRST_TOPICS_S), (no_controller, FIRST_NEWS_S)):
        client = member.updates.first_news()
        assert longest_wait(client) == longest
        member.clock.advance(longest)
        assert longest_wait(client) is None
        assert longest_wait(member.updates.first_news()) is None


def test_without_topics_a_client_waits_for_none(member: Member) -> None:
    member.configs.are_any = False
    client = member.updates.first_news()
    assert longest_wait(client) == FIRST_NEWS_S
    member.told()
    assert longest_wait(client) is None
