"""What lies between two images of a topic."""

from dataclasses import replace

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.image_delta import TopicDelta, first_delta, topic_delta

ALONE = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
T = TopicImage(name="t", topic_id=b"1" * 16, partitions={0: ALONE, 1: ALONE})


def test_a_topic_comes() -> None:
    assert topic_delta("t", None, T) == TopicDelta(name="t", topic=T, new=(0, 1))


def test_a_topic_goes() -> None:
    assert topic_delta("t", T, None) == TopicDelta(name="t", deleted=T)


def test_a_topic_that_stays_changes_nothing_also_as_an_equal_value() -> None:
    same = replace(T, partitions={index: replace(one) for index, one in T.partitions.items()})
    delta = topic_delta("t", T, same)
    assert not delta.changes_anything
    assert (delta.new, delta.changed, delta.config_changed) == ((), (), False)
    assert not topic_delta("t", None, None).changes_anything


def test_another_topic_of_the_same_name_is_made_after_the_old_one_has_gone() -> None:
    other = replace(T, topic_id=b"2" * 16)
    assert topic_delta("t", T, other) == TopicDelta(name="t", deleted=T, topic=other, new=(0, 1))


def test_partitions_are_added_and_led_anew() -> None:
    again = replace(ALONE, leader_epoch=1)
    now = replace(T, partitions={0: ALONE, 1: again, 2: ALONE})
    delta = topic_delta("t", T, now)
    assert delta == TopicDelta(name="t", topic=now, new=(2,), changed=(1,))
    assert delta.changes_anything


def test_a_partition_that_is_not_named_any_more_is_lost() -> None:
    now = replace(T, partitions={1: ALONE})
    assert topic_delta("t", T, now) == TopicDelta(name="t", topic=now, lost=(0,))
    assert topic_delta("t", T, now).changes_anything


def test_configs_change() -> None:
    now = replace(T, config={"retention.ms": "1"})
    delta = topic_delta("t", T, now)
    assert delta == TopicDelta(name="t", topic=now, config_changed=True)
    assert delta.changes_anything


def test_what_a_start_finds_is_not_new() -> None:
    """Its logs exist: none is made elsewhere while a directory that may hold it is offline."""
    assert first_delta(T) == TopicDelta(name="t", topic=T, changed=(0, 1))
