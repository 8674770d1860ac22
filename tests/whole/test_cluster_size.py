"""Kafka's controller sends all partitions in one request: the broker takes 200,000 in turns."""

from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.support.whole_cluster import WholeCluster, whole_cluster
from tests.whole.test_cluster_access import SECURE
from tests.whole.test_every_api_is_bounded import longest_step

EPOCH = 99
REPLICAS = [7, 8, 9]


def states(topic_kind: Any, partition_kind: Any, topics: int, partitions: int) -> list[Any]:
    """So many partitions of each topic, which the brokers 7 to 9 have replicas of."""
    return [
        topic_kind(
            topic_name=f"topic-{topic}",
            topic_id=topic.to_bytes(16, "big"),
            partition_states=[
                partition_kind(
                    partition_index=index,
                    controller_epoch=EPOCH,
                    leader=7 + index % 3,
                    leader_epoch=1000 + index,
                    isr=REPLICAS,
                    replicas=REPLICAS,
                )
                for index in range(partitions)
            ],
        )
        for topic in range(1, topics + 1)
    ]


def told(topics: int, partitions: int) -> UpdateMetadataRequest:
    """UpdateMetadata of a controller 9, whose brokers are 1 and 7 to 9."""
    return UpdateMetadataRequest(
        controller_id=9,
        controller_epoch=EPOCH,
        topic_states=states(
            UpdateMetadataTopicState, UpdateMetadataPartitionState, topics, partitions
        ),
        live_brokers=[
            UpdateMetadataBroker(
                id=broker,
                endpoints=[
                    UpdateMetadataEndpoint(
                        port=9092, host=f"b{broker}", listener="PLAINTEXT", security_protocol=0
                    )
                ],
            )
            for broker in (1, *REPLICAS)
        ],
    )


def ordered(topics: int, partitions: int) -> LeaderAndIsrRequest:
    """LeaderAndIsr of partitions that this broker has no replica of."""
    return LeaderAndIsrRequest(
        controller_id=9,
        controller_epoch=EPOCH,
        topic_states=states(LeaderAndIsrTopicState, LeaderAndIsrPartitionState, topics, partitions),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("topics", "partitions"), [(2_000, 100), (10, 20_000)])
def test_200_000_partitions_in_one_request(topics: int, partitions: int) -> None:
    @whole_cluster(1)
    async def scenario(cluster: WholeCluster) -> None:
        broker = cluster[1]
        request = told(topics, partitions)
        for _ in range(2):  # new, and known
            answer = await longest_step(broker, ApiKey.UPDATE_METADATA, 8, request)
            assert answer.error_code == ErrorCode.NONE
            image = cluster.images()[1]
            found = [len(image.topic(f"topic-{n}").partitions) for n in range(1, topics + 1)]  # type: ignore[union-attr]
            assert found == [partitions] * topics
        request = ordered(topics, partitions)
        answer = await longest_step(broker, ApiKey.LEADER_AND_ISR, 7, request)
        codes = [one.error_code for topic in answer.topics for one in topic.partition_errors]
        assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * topics * partitions
        request.controller_epoch = EPOCH - 1
        answer = await longest_step(broker, ApiKey.LEADER_AND_ISR, 7, request)
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert len(answer.topics) == topics

    scenario()


@pytest.mark.slow
@whole_cluster(1, **SECURE)
async def test_a_client_that_may_not_act_for_the_cluster_has_the_usual_limits(
    cluster: WholeCluster,
) -> None:
    assert await longest_step(cluster[1], ApiKey.UPDATE_METADATA, 8, told(10, 10_000)) is None
    answer = await longest_step(cluster[1], ApiKey.UPDATE_METADATA, 8, told(1, 10_000))
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
