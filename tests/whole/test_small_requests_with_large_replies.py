"""A small request with a large reply holds the loop no longer than others: its reply is encoded in
turns (`broker.many`), however the results are spread over what the request names."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker.api import create_topics
from broker.many import MANY
from broker.network.replies import Replies
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.topic_requests import creation
from tests.support.whole_broker import WholeBroker, run_whole_broker
from tests.whole.kinds_of_requests import join
from tests.whole.plain import make_coordinators

BROKER, LOGGERS = 4, 8
SEVERAL = MANY // 2 + 1
"""Few enough alone; two times as many are many."""


async def no_preparation(broker: WholeBroker) -> None:
    pass


async def many_members(broker: WholeBroker) -> None:
    async def come(number: int) -> None:
        await broker.client(f"c{number}").call(*join(timeout_ms=600_000), patience_s=60)

    async with broker.together() as clients:
        for number in range(SEVERAL):
            clients.start_soon(come, number)


async def many_partitions(broker: WholeBroker) -> None:
    await broker.create_topic("t", SEVERAL)
    client = broker.client()
    begun = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    owner = await client.call(ApiKey.INIT_PRODUCER_ID, 3, begun)
    topics = [AddPartitionsToTxnTopic(name="t", partitions=list(range(SEVERAL)))]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=owner.producer_id,
        v3_and_below_producer_epoch=owner.producer_epoch,
        v3_and_below_topics=topics,
    )
    added = await client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
    codes = added.results_by_topic_v3_and_below[0].results_by_partition
    assert {one.partition_error_code for one in codes} == {ErrorCode.NONE}


def groups(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=["g"] * count)


def transactions(count: int) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=["x"] * count)


def coordinators(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=0, coordinator_keys=[f"g{n}" for n in range(count)])


def topics(count: int) -> Any:
    return creation(*(f"n{count}-{number}" for number in range(count)), partitions=1)


def configs(*kinds: int) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name="1", configuration_keys=None)
            for kind in kinds
        ]
    )


def results_of(answer: Any) -> list[Any]:
    """The results of one of these replies, which has one list."""
    (results,) = [
        value
        for name in answer.__slots__
        if isinstance(value := getattr(answer, name), list) and value
    ]
    return results


CASES: dict[str, tuple[ApiKey, int, Callable[[WholeBroker], Awaitable[None]], Any, Any]] = {
    "groups": (ApiKey.DESCRIBE_GROUPS, 5, many_members, groups(1), groups(2)),
    "transactions": (
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        many_partitions,
        transactions(1),
        transactions(2),
    ),
    "coordinators": (
        ApiKey.FIND_COORDINATOR,
        4,
        no_preparation,
        coordinators(MANY),
        coordinators(MANY + 1),
    ),
    "topics": (
        ApiKey.CREATE_TOPICS,
        7,
        no_preparation,
        topics(create_topics.FEW),
        topics(create_topics.FEW + 1),
    ),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        no_preparation,
        configs(BROKER),
        configs(BROKER, LOGGERS),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_reply_with_many_results_in_all_is_encoded_in_turns(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, version, prepare, small, large = CASES[case]
    in_turns: list[str] = []
    append_in_turns = Replies.append_in_turns

    async def noted(self: Replies, route: Any, *rest: Any) -> None:
        in_turns.append(route.metrics.name)
        await append_in_turns(self, route, *rest)

    monkeypatch.setattr(Replies, "append_in_turns", noted)

    async def scenario(broker: WholeBroker) -> None:
        await make_coordinators(broker)
        await prepare(broker)
        client = broker.client()
        in_turns.clear()
        one_go = await client.call(key, version, small)
        assert in_turns == []
        turns = await client.call(key, version, large)
        assert len(in_turns) == 1
        assert len(results_of(turns)) == len(results_of(one_go)) + 1
        for answer in (one_go, turns):
            assert {one.error_code for one in results_of(answer)} == {ErrorCode.NONE}

    run_whole_broker(scenario, **{"group.initial.rebalance.delay.ms": "1000"})
