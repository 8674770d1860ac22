"""Requests that name, or ask for, more than anybody needs."""

import threading

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.delete_groups import DeleteGroupsRequest
from tests.hostile.attacks import (
    ask,
    create_topic,
    describe_one_broker,
    metadata,
    more_partitions,
    offsets_of,
    produce,
)
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
    with watched(broker, kept=10 * EACH * PARTITION):
        makers = [
            threading.Thread(target=create_topic, args=(broker.port, f"many-{number}", EACH))
            for number in range(10)
        ]
        for maker in makers:
            maker.start()
        while any(maker.is_alive() for maker in makers):
            assert produce(broker.port, "large", batch) == ErrorCode.NONE
        for maker in makers:
            maker.join()


def test_one_broker_described_5000_times(broker: BrokerProcess) -> None:
    with watched(broker):
        describe_one_broker(broker.port, 5_000)


def test_metadata_of_400000_unknown_topics(broker: BrokerProcess) -> None:
    with watched(broker):
        metadata(broker.port, [f"unknown-{number}" for number in range(400_000)])


def test_metadata_that_creates_2000_topics(broker: BrokerProcess) -> None:
    with watched(broker):
        metadata(broker.port, [f"new-{number}" for number in range(2_000)], auto_create=True)


def test_a_million_offsets_asked_for(broker: BrokerProcess) -> None:
    with watched(broker):
        offsets_of(broker.port, "group", "t", 1_000_000)


def test_50000_groups_deleted(broker: BrokerProcess) -> None:
    names = [f"group-{number}" for number in range(50_000)]
    with watched(broker):
        ask(broker.port, ApiKey.DELETE_GROUPS, 1, DeleteGroupsRequest(groups_names=names))
