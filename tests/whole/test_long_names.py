"""Names as long as the protocol lets them be are refused as any bad name, in every version."""

import logging

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.topic_requests import creation
from tests.support.whole_broker import WholeBroker, whole_broker

LONGEST = 32767


@pytest.mark.parametrize("version", range(8))
@pytest.mark.parametrize("name", ["x" * LONGEST, "\u00e4" * (LONGEST // 2)], ids=["x", "umlauts"])
@whole_broker()
async def test_a_topic_name_of_any_length_is_an_invalid_topic(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture, version: int, name: str
) -> None:
    client = broker.client()
    answer = await client.call(ApiKey.CREATE_TOPICS, version, creation(name))
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.topics[0].name == name
    twice = await client.call(ApiKey.CREATE_TOPICS, version, creation(name, name))
    assert twice.topics[0].error_code == ErrorCode.INVALID_REQUEST
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@whole_broker()
async def test_other_requests_answer_long_names_as_short_ones(
    broker: WholeBroker, caplog: pytest.LogCaptureFixture
) -> None:
    client, name = broker.client(), "x" * LONGEST
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name)]
    request = DescribeConfigsRequest(resources=resources)
    configs = await client.call(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert configs.results[0].error_code != ErrorCode.UNKNOWN_SERVER_ERROR
    await client.call(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key=name))
    groups = await client.call(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[name]))
    assert groups.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    metadata = await client.call(ApiKey.METADATA, 9, asked)
    assert metadata.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
