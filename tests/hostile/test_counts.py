"""Requests that name, or ask for, more than anybody needs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.hostile.attacks import ask, create_topic, more_partitions, produce
from tests.hostile.bombs import honest_records
from tests.hostile.watch import watched
from tests.support.broker_process import BrokerProcess

MOST = 2**31 - 1
EACH = 1_000
"""Partitions of each topic that is made."""
PARTITION = 15_000
"""Bytes that an open one takes, for as long as it is there."""


def test_partitions_without_end(broker: BrokerProcess) -> None:
    create_topic(broker.port, "t")
    with watched(broker):
        for count in (10_001, 20_000_000, MOST):
            for validate_only in (True, False):
                code = create_topic(broker.port, "many", count, validate_only=validate_only)
                assert code == ErrorCode.POLICY_VIOLATION, code.name
            code = more_partitions(broker.port, "t", min(count + 1, MOST))
            assert code == ErrorCode.POLICY_VIOLATION, code.name


def test_a_produce_does_not_wait_for_topics_that_are_made(broker: BrokerProcess) -> None:
    create_topic(broker.port, "large")
    batch = honest_records(20, b"0123456789" * 3_000)
    with watched(broker, kept=10 * EACH * PARTITION), ThreadPoolExecutor(10) as makers:
        names = [f"many-{number}" for number in range(10)]
        made = [makers.submit(create_topic, broker.port, name, EACH) for name in names]
        while not all(one.done() for one in made):
            assert produce(broker.port, "large", batch) == ErrorCode.NONE


def metadata(count: int, *, made: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"unknown-{number}") for number in range(count)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=made)


def offsets(count: int) -> OffsetFetchRequest:
    wanted = OffsetFetchRequestTopic(name="t", partition_indexes=list(range(count)))
    return OffsetFetchRequest(group_id="group", topics=[wanted])


ONE_BROKER = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
LARGE: dict[str, tuple[ApiKey, int, Callable[[], Any]]] = {
    "one broker described 5000 times": (
        *(ApiKey.DESCRIBE_CONFIGS, 2),
        lambda: DescribeConfigsRequest(resources=[ONE_BROKER] * 5_000),
    ),
    "metadata of 400000 unknown topics": (ApiKey.METADATA, 5, lambda: metadata(400_000)),
    "metadata that creates 2000 topics": (ApiKey.METADATA, 5, lambda: metadata(2_000, made=True)),
    "a million offsets asked for": (ApiKey.OFFSET_FETCH, 5, lambda: offsets(1_000_000)),
    "50000 groups deleted": (
        *(ApiKey.DELETE_GROUPS, 1),
        lambda: DeleteGroupsRequest(groups_names=[f"group-{number}" for number in range(50_000)]),
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_one_large_request(broker: BrokerProcess, name: str) -> None:
    key, version, make = LARGE[name]
    request = make()
    with watched(broker):
        ask(broker.port, key, version, request)
