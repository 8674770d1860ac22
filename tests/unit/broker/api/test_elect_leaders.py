"""ElectLeaders on a broker that is alone (KIP-183, KIP-460)."""

from dataclasses import replace
from typing import Any

import pytest

from broker.api.elect_leaders import API, ElectionType, ElectLeadersHandler
from broker.cluster.image import NO_LEADER, BrokerImage, MetadataImage
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.elect_leaders import ElectLeadersRequest, ElectTopicPartitions
from tests.support.api_calls import call
from tests.support.group_handlers import topic_image

KEY = ApiKey.ELECT_LEADERS
NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED
NO_PREFERRED = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
NO_REPLICA = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
VERSIONS = range(API.versions[1] + 1)


@pytest.fixture
def image() -> MetadataImage:
    """Partition 1 is led by its second replica, as after an adoption, 2 has lost its disk."""
    image = MetadataImage()
    image.set_broker(BrokerImage(broker_id=1, endpoints=()))
    topic = topic_image("t", bytes(16), 3)
    first = topic.partitions[0]
    partitions = {
        0: first,
        1: replace(first, replicas=(2, 1)),
        2: replace(first, leader=NO_LEADER, offline_replicas=(1,)),
    }
    image.set_topic(replace(topic, partitions=partitions))
    image.set_topic(topic_image("well", b"1" * 16, 2))
    return image


def elect(image: MetadataImage, version: int, **fields: Any) -> dict[str, dict[int, int]]:
    response = call(ElectLeadersHandler(image), KEY, version, ElectLeadersRequest(**fields))
    assert response.error_code == 0
    results = response.replica_election_results
    assert all(one.error_message for topic in results for one in topic.partition_result)
    return {
        topic.topic: {one.partition_id: one.error_code for one in topic.partition_result}
        for topic in results
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_preferred_leader_leads_already_or_cannot(image: MetadataImage, version: int) -> None:
    asked = [
        ElectTopicPartitions(topic="t", partitions=[2, 0, 1, 3]),
        ElectTopicPartitions(topic="u", partitions=[0]),
    ]
    assert elect(image, version, topic_partitions=asked) == {
        "t": {2: NO_PREFERRED, 0: NOT_NEEDED, 1: NO_PREFERRED, 3: UNKNOWN},
        "u": {0: UNKNOWN},
    }


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_an_unclean_election_is_for_partitions_without_leader(
    image: MetadataImage, version: int
) -> None:
    asked = [ElectTopicPartitions(topic="t", partitions=[0, 1, 2])]
    found = elect(image, version, election_type=ElectionType.UNCLEAN, topic_partitions=asked)
    assert found == {"t": {0: NOT_NEEDED, 1: NOT_NEEDED, 2: NO_REPLICA}}


@pytest.mark.parametrize("version", VERSIONS)
def test_null_asks_for_all_and_tells_only_who_got_no_leader(
    image: MetadataImage, version: int
) -> None:
    found = elect(image, version, topic_partitions=None)
    assert found == {"t": {1: NO_PREFERRED, 2: NO_PREFERRED}, "well": {}}
    assert elect(image, version, topic_partitions=[]) == {}


def test_a_request_names_what_is_not_there(image: MetadataImage) -> None:
    asked = [
        ElectTopicPartitions(topic="u", partitions=[0]),
        ElectTopicPartitions(topic="t", partitions=[7]),
    ]
    request = ElectLeadersRequest(topic_partitions=asked)
    response = call(ElectLeadersHandler(image), KEY, 2, request)
    [[topic], [partition]] = [one.partition_result for one in response.replica_election_results]
    assert topic.error_message == "No such topic as u"
    assert partition.error_message == "No such partition as t-7"


def test_an_unknown_type_refuses_everything_but_nothing(image: MetadataImage) -> None:
    asked = [ElectTopicPartitions(topic="t", partitions=[0, 1])]
    handler = ElectLeadersHandler(image)
    request = ElectLeadersRequest(election_type=2, topic_partitions=asked)
    response = call(handler, KEY, 2, request)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    [topic] = response.replica_election_results
    assert {one.error_code for one in topic.partition_result} == {ErrorCode.INVALID_REQUEST}
    assert topic.partition_result[0].error_message == "Unknown election type 2"
    assert elect(image, 2, election_type=2, topic_partitions=[]) == {}
    assert elect(image, 0, topic_partitions=asked)  # v0 has no types
