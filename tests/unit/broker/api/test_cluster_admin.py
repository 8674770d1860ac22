"""Administrators get the controller's answers to elections and reassignments."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from broker.api.alter_partition_reassignments import AlterPartitionReassignmentsHandler
from broker.api.elect_leaders import ElectingHandler
from broker.api.list_partition_reassignments import ListPartitionReassignmentsHandler
from broker.cluster.image import MetadataImage, TopicImage
from broker.cluster.replica_assignment import ReplicaAssignment
from broker.membership.image_changes import ImageChanges
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectTopicPartitions
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from protocol.types import TopicPartition
from tests.support.api_calls import call
from tests.support.manual_clock import ManualClock
from tests.support.membership_fakes import ID, partition

T0, T1, T2 = (TopicPartition("t", index) for index in range(3))
NOT_NEEDED = KafkaError(ErrorCode.ELECTION_NOT_NEEDED)


class Passing(ManualClock):
    """Each look at it takes a second."""

    def monotonic(self) -> float:
        self.advance(1)
        return super().monotonic()


class Controller:
    """Returns `outcomes` for every request, and remembers the request."""

    def __init__(self, outcomes: Mapping[TopicPartition, Any]) -> None:
        self.outcomes = outcomes
        self.asked: Any = None

    async def elect_leaders(
        self, kind: int, partitions: Collection[TopicPartition] | None
    ) -> Mapping[TopicPartition, KafkaError | None]:
        self.asked = kind, None if partitions is None else list(partitions)
        return self.outcomes

    async def alter_reassignments(
        self, wanted: Mapping[TopicPartition, tuple[int, ...] | None], *, may_resize: bool
    ) -> Mapping[TopicPartition, KafkaError | None]:
        self.asked, self.may_resize = dict(wanted), may_resize
        return self.outcomes

    async def list_reassignments(
        self, partitions: Collection[TopicPartition] | None
    ) -> Mapping[TopicPartition, ReplicaAssignment]:
        self.asked = None if partitions is None else list(partitions)
        return self.outcomes


def image(*leaders: int) -> MetadataImage:
    image = MetadataImage()
    image.set_topic(
        TopicImage(
            name="t",
            topic_id=ID,
            partitions={index: partition(leader, 0) for index, leader in enumerate(leaders)},
        )
    )
    return image


def elect(
    controller: Controller, image: MetadataImage, *, version: int = 2, everything: bool = False
) -> dict[int, ErrorCode]:
    handler = ElectingHandler(image, controller, ImageChanges(Passing()))
    named = None if everything else [ElectTopicPartitions(topic="t", partitions=[0, 1, 2])]
    request = ElectLeadersRequest(election_type=1, topic_partitions=named, timeout_ms=5_000)
    answer = call(handler, ApiKey.ELECT_LEADERS, version, request)
    return {
        one.partition_id: ErrorCode(one.error_code)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    }


def test_an_election_is_answered_when_the_image_shows_the_leader() -> None:
    controller = Controller({T0: None, T1: NOT_NEEDED, T2: None})
    codes = elect(controller, image(1, 1, -1))
    assert controller.asked == (1, [T0, T1, T2])
    assert codes == {
        0: ErrorCode.NONE,
        1: ErrorCode.ELECTION_NOT_NEEDED,
        2: ErrorCode.REQUEST_TIMED_OUT,
    }


def test_the_first_version_elects_the_preferred_replica() -> None:
    controller = Controller({T0: None, T1: None})
    codes = elect(controller, image(1, 2), version=0)
    assert controller.asked[0] == 0
    assert codes == {0: ErrorCode.NONE, 1: ErrorCode.REQUEST_TIMED_OUT}


def test_an_election_for_all_partitions_leaves_out_those_that_needed_none() -> None:
    controller = Controller({T0: None, T1: NOT_NEEDED})
    assert elect(controller, image(1, 1), everything=True) == {0: ErrorCode.NONE}
    assert controller.asked == (1, None)


@pytest.mark.parametrize(("version", "may_resize"), [(0, True), (1, True), (1, False)])
def test_reassignments_are_begun_and_cancelled_one_by_one(version: int, may_resize: bool) -> None:
    controller = Controller(
        {T0: None, T1: KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "none")}
    )
    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(
                name="t",
                partitions=[
                    ReassignablePartition(partition_index=0, replicas=[2, 3]),
                    ReassignablePartition(partition_index=1, replicas=None),
                ],
            )
        ],
        timeout_ms=1,
        allow_replication_factor_change=may_resize,
    )
    handler = AlterPartitionReassignmentsHandler(MetadataImage(), controller)
    answer = call(handler, ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, request)
    assert (controller.asked, controller.may_resize) == ({T0: (2, 3), T1: None}, may_resize)
    assert [
        (one.partition_index, one.error_code, one.error_message)
        for one in answer.responses[0].partitions
    ] == [(0, 0, None), (1, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "none")]


@pytest.mark.parametrize("everything", [True, False])
def test_reassignments_under_way_are_listed(everything: bool) -> None:
    controller = Controller({T1: ReplicaAssignment((1, 2, 3), (3,), (1,))})
    named = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 1])]
    request = ListPartitionReassignmentsRequest(topics=None if everything else named, timeout_ms=1)
    handler = ListPartitionReassignmentsHandler(controller)
    answer = call(handler, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert controller.asked == (None if everything else [T0, T1])
    [topic] = answer.topics
    [one] = topic.partitions
    assert (topic.name, one.partition_index) == ("t", 1)
    assert (one.replicas, one.adding_replicas, one.removing_replicas) == ([1, 2, 3], [3], [1])
