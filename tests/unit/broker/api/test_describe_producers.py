"""DescribeProducers over the wire refuses unknown partitions; other tests hold its answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.api.describe_producers import DescribeProducersHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.support.api_calls import call


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
    handler = DescribeProducersHandler(SimpleNamespace(partition=nothing_here))  # type: ignore[arg-type]
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[0, 1])])
    response = call(handler, ApiKey.DESCRIBE_PRODUCERS, 0, request)
    assert [one.error_code for one in response.topics[0].partitions] == [code, code]
