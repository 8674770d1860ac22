"""The elections of a start: new leaders and ISRs, counted as Kafka counts them."""

import pytest

from broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from broker.cluster.leadership import ElectionStatistics, elected

HERE = 1


def test_each_partition_has_its_own_next_epoch_also_where_some_are_one_value() -> None:
    same = PartitionImage(leader=2, leader_epoch=4, replicas=(1, 2), isr=(2,))
    other = PartitionImage(leader=2, leader_epoch=7, replicas=(2,), isr=(2,))
    topic = TopicImage(
        name="t", topic_id=b"", partitions=dict(enumerate((same, same, other, same)))
    )
    after = elected(topic, HERE).partitions
    assert [one.leader_epoch for one in after.values()] == [5, 5, 8, 5]
    assert [one.leader for one in after.values()] == [HERE, HERE, NO_LEADER, HERE]
    assert [one.isr for one in after.values()] == [(HERE,), (HERE,), (), (HERE,)]


@pytest.mark.parametrize(
    ("replicas", "isr", "expected"),
    [
        ((1,), (1,), ElectionStatistics()),
        ((1, 2, 3), (3, 1), ElectionStatistics(isr_shrinks=1)),
        ((1, 2), (2,), ElectionStatistics(unclean=1)),
        ((1, 2, 3), (2, 3), ElectionStatistics(isr_shrinks=1, unclean=1)),
        ((1,), (), ElectionStatistics(isr_expands=1)),
        ((2, 3), (2, 3), ElectionStatistics(isr_shrinks=1)),
    ],
)
def test_an_election(
    replicas: tuple[int, ...], isr: tuple[int, ...], expected: ElectionStatistics
) -> None:
    partition = PartitionImage(leader=2, leader_epoch=4, replicas=replicas, isr=isr)
    topic = TopicImage(name="t", topic_id=b"", partitions={0: partition})
    assert ElectionStatistics().with_topic(topic, elected(topic, HERE)) == expected
