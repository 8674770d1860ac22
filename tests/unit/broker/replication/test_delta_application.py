"""The role that a broker takes in each partition of a changed topic."""

from collections.abc import Mapping
from typing import Any

import pytest

from broker.cluster.image import NO_LEADER, PartitionImage, TopicImage
from broker.cluster.image_delta import TopicDelta
from broker.replication.delta_application import apply_delta
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition
from storage.waits import at_once

ME, OTHER, THIRD = 1, 2, 3
ID = b"i" * 16


class Roles:
    """Notes the calls in their order: (role, partition, leader)."""

    broker_id = ME

    def __init__(self, *, is_clustered: bool, failing: Mapping[int, Exception] | None = None):
        self.is_clustered = is_clustered
        self.failing = failing or {}
        self.taken: list[tuple[str, int, int]] = []
        self.found: dict[tuple[str, int], Any] = {}

    def find(self, key: tuple[str, int], /) -> Any:
        return self.found.get(key)

    def make_leader(self, tp: TopicPartition, _id: bytes, image: PartitionImage, *_: Any) -> None:
        self._take("leader", tp, image)

    def make_follower(self, tp: TopicPartition, _id: bytes, image: PartitionImage, *_: Any) -> None:
        self._take("follower", tp, image)

    def resign(self, tp: TopicPartition, image: PartitionImage) -> None:
        self._take("resign", tp, image)

    def delete_partition(self, tp: TopicPartition) -> None:
        self.taken.append(("delete", tp.partition, NO_LEADER))

    def forget_topic(self, topic: str) -> None:
        pass

    def _take(self, role: str, tp: TopicPartition, image: PartitionImage) -> None:
        self.taken.append((role, tp.partition, image.leader))
        if tp.partition in self.failing:
            raise self.failing[tp.partition]


def topic(*partitions: tuple[int, tuple[int, ...]]) -> TopicImage:
    """A topic; each partition by its leader and replicas."""
    return TopicImage(
        name="t",
        topic_id=ID,
        partitions={
            index: PartitionImage(leader=leader, leader_epoch=5, replicas=replicas, isr=replicas)
            for index, (leader, replicas) in enumerate(partitions)
        },
    )


def applied(roles: Roles, image: TopicImage, **changes: tuple[int, ...]) -> Any:
    return at_once(apply_delta(roles, TopicDelta(name="t", topic=image, **changes), TopicConfig()))


@pytest.mark.parametrize("kind", ["new", "changed"])
@pytest.mark.parametrize(
    ("is_clustered", "leader", "replicas", "role"),
    [
        (False, ME, (ME,), "leader"),
        (False, NO_LEADER, (ME,), "resign"),
        (False, OTHER, (ME, OTHER), "resign"),
        (True, ME, (ME, OTHER), "leader"),
        (True, OTHER, (ME, OTHER), "follower"),
        (True, NO_LEADER, (ME, OTHER), "follower"),
        (True, OTHER, (OTHER, THIRD), "resign"),
        (True, NO_LEADER, (OTHER, THIRD), "resign"),
    ],
)
def test_the_role_follows_from_leader_and_replicas(
    kind: str, is_clustered: bool, leader: int, replicas: tuple[int, ...], role: str
) -> None:
    roles = Roles(is_clustered=is_clustered)
    outcome = applied(roles, topic((leader, replicas)), **{kind: (0,)})
    assert roles.taken == [(role, 0, leader)]
    assert not outcome.failed


def test_what_the_topic_no_longer_has_is_resigned_from() -> None:
    roles = Roles(is_clustered=False)
    applied(roles, topic((ME, (ME,))), lost=(7,))
    assert roles.taken == [("resign", 7, NO_LEADER)]


def test_a_log_that_cannot_be_opened_does_not_keep_others_from_a_new_leader() -> None:
    refusal = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    roles = Roles(is_clustered=False, failing={0: refusal})
    image = topic((ME, (ME,)), (OTHER, (OTHER,)))
    outcome = applied(roles, image, changed=(0, 1))
    assert roles.taken == [("leader", 0, ME), ("resign", 1, OTHER)]
    assert outcome.failed == {0: refusal}
