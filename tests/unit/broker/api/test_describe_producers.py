"""DescribeProducers: who answers, and what is refused; other tests hold the answers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.api.describe_producers import DescribeProducersHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from storage.producers.entry import ProducerStateEntry
from tests.support.api_calls import call
from tests.support.broker_bench import Bench


def nothing_here(tp: object) -> Any:
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_there_is_not_and_what_cannot_be(name: str, code: ErrorCode) -> None:
    handler = DescribeProducersHandler(SimpleNamespace(replica=nothing_here))  # type: ignore[arg-type]
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0, 1])])
    response = call(handler, ApiKey.DESCRIBE_PRODUCERS, 0, request)
    assert [one.error_code for one in response.topics[0].partitions] == [code, code]


def test_every_replica_answers_unless_it_is_offline() -> None:
    bench = Bench()
    led, followed, offline = bench.topic(partitions=3, replicas=(1, 2), isr=(1, 2))
    for partition in (led, followed, offline):
        entry = ProducerStateEntry(producer_id=7, producer_epoch=3)
        partition.log.producers.producers = {7: entry}
    followed.follow(replace(followed.state.image, leader=2, leader_epoch=7))
    offline.close(ErrorCode.KAFKA_STORAGE_ERROR)
    bench.image.add("far", b"f" * 16, 1)
    handler = DescribeProducersHandler(bench.replicas)
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name="t", partition_indexes=[0, 1, 2]),
            TopicRequest(name="far", partition_indexes=[0]),
        ]
    )
    here, far = call(handler, ApiKey.DESCRIBE_PRODUCERS, 0, request).topics
    assert [
        (one.error_code, [each.producer_id for each in one.active_producers])
        for one in (*here.partitions, *far.partitions)
    ] == [
        (ErrorCode.NONE, [7]),
        (ErrorCode.NONE, [7]),
        (ErrorCode.KAFKA_STORAGE_ERROR, []),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, []),
    ]
