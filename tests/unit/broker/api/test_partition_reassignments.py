"""Reassignments on a broker that is alone (KIP-455)."""

from typing import Any

import pytest

from broker.api.alter_partition_reassignments import AlterPartitionReassignmentsHandler
from broker.api.list_partition_reassignments import ListPartitionReassignmentsHandler
from broker.cluster.image import BrokerImage, MetadataImage
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.support.api_calls import call
from tests.support.group_handlers import topic_image


@pytest.fixture
def image() -> MetadataImage:
    image = MetadataImage()
    image.set_broker(BrokerImage(broker_id=1, endpoints=()))
    image.set_topic(topic_image("t", bytes(16), 2))
    return image


def reassign(
    image: MetadataImage, version: int, index: int, replicas: Any, topic: str = "t", **fields: Any
) -> Any:
    response = call(
        AlterPartitionReassignmentsHandler(image, None),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        version,
        AlterPartitionReassignmentsRequest(
            **fields,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[ReassignablePartition(partition_index=index, replicas=replicas)],
                )
            ],
        ),
    )
    assert response.error_code == 0
    [[result]] = [topic.partitions for topic in response.responses]
    assert result.partition_index == index
    return result


@pytest.mark.parametrize(
    ("version", "fields"), [(0, {}), (1, {}), (1, {"allow_replication_factor_change": False})]
)
def test_only_the_replicas_that_are_there_can_be_had(
    image: MetadataImage, version: int, fields: dict[str, bool]
) -> None:
    """With a fixed replication factor, too: as in Kafka, unknown brokers are refused first."""
    invalid, unknown = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(image, version, 1, [1], **fields).error_code == 0
    assert reassign(image, version, 1, [1], **fields).error_message is None
    for replicas in ([2], [1, 2], [], [1, 1]):
        refused = reassign(image, version, 0, replicas, **fields)
        assert refused.error_code == invalid
        assert refused.error_message
    assert reassign(image, version, 2, [1], **fields).error_code == unknown
    assert reassign(image, version, 0, [1], topic="u").error_code == unknown
    nothing = reassign(image, version, 0, None)
    assert nothing.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(
    "topics", [None, [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 9])]]
)
def test_none_is_ever_under_way(topics: Any) -> None:
    request = ListPartitionReassignmentsRequest(topics=topics)
    handler = ListPartitionReassignmentsHandler(None)
    response = call(handler, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert (response.error_code, list(response.topics)) == (0, [])
