"""The difference between two images of a topic."""

from dataclasses import replace
from typing import Any

import pytest

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.image_delta import TopicDelta, first_delta, topic_delta

ALONE = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
T = TopicImage(name="t", topic_id=b"1" * 16, partitions={0: ALONE, 1: ALONE})


OTHER = replace(T, topic_id=b"2" * 16)
AGAIN = replace(ALONE, leader_epoch=1)
MORE = replace(T, partitions={0: ALONE, 1: AGAIN, 2: ALONE})
FEWER = replace(T, partitions={1: ALONE})
SET = replace(T, config={"retention.ms": "1"})


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (None, T, {"topic": T, "new": (0, 1)}),
        (T, None, {"deleted": T}),
        (T, OTHER, {"deleted": T, "topic": OTHER, "new": (0, 1)}),
        (T, MORE, {"topic": MORE, "new": (2,), "changed": (1,)}),
        (T, FEWER, {"topic": FEWER, "lost": (0,)}),
        (T, SET, {"topic": SET, "config_changed": True}),
    ],
    ids=["comes", "goes", "another of its name", "grows", "loses a partition", "configs"],
)
def test_what_changes(
    before: TopicImage | None, now: TopicImage | None, changes: dict[str, Any]
) -> None:
    delta = topic_delta("t", before, now)
    assert delta == TopicDelta(name="t", **changes)
    assert delta.changes_anything


def test_a_topic_that_stays_changes_nothing_also_as_an_equal_value() -> None:
    same = replace(T, partitions={index: replace(one) for index, one in T.partitions.items()})
    delta = topic_delta("t", T, same)
    assert not delta.changes_anything
    assert (delta.new, delta.changed, delta.config_changed) == ((), (), False)
    assert not topic_delta("t", None, None).changes_anything


def test_what_a_start_finds_is_not_new() -> None:
    """Its logs exist: none is made elsewhere while a directory that may hold it is offline."""
    assert first_delta(T) == TopicDelta(name="t", topic=T, changed=(0, 1))
