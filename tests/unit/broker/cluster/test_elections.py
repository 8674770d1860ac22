"""What the elections of a start change: Kafka's IsrShrinks, IsrExpands, unclean ones."""

import pytest

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.leadership import ElectionStatistics, elected

HERE = 1


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
