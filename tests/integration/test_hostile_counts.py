"""Requests of a few bytes that once took minutes and gigabytes, and a good client beside them.

How long one step of the event loop takes is held by `tests/whole/test_every_api_is_bounded.py`,
in processor time; here it is memory, and that everybody is answered by the same process.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.integration

MOST_GROWTH = 300 << 20
NUMBERLESS = bytes(16)

ATTACKS: dict[str, tuple[ApiKey, int, Callable[[], Any]]] = {
    "millions of partitions": (
        ApiKey.CREATE_TOPICS,
        7,
        lambda: CreateTopicsRequest(
            topics=[CreatableTopic(name="n", num_partitions=2**31 - 1, replication_factor=1)],
            validate_only=True,
        ),
    ),
    "one broker, named 5,000 times": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(
            resources=[described("1")] * 5_000, include_synonyms=True, include_documentation=True
        ),
    ),
    "one broker, spelled in 3,000 ways": (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(
            resources=[described("0" * zeros + "1") for zeros in range(3_000)],
            include_synonyms=True,
            include_documentation=True,
        ),
    ),
    "400,000 unknown topics": (
        ApiKey.METADATA,
        12,
        lambda: MetadataRequest(
            topics=[
                MetadataRequestTopic(name=f"t{number}", topic_id=NUMBERLESS)
                for number in range(400_000)
            ],
            allow_auto_topic_creation=False,
        ),
    ),
    "490,000 offsets": (
        ApiKey.OFFSET_FETCH,
        9,
        lambda: OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    member_epoch=-1,
                    topics=[
                        OffsetFetchRequestTopics(
                            name=f"t{number}", partition_indexes=list(range(4_900))
                        )
                        for number in range(100)
                    ],
                )
            ]
        ),
    ),
    "50,000 groups": (
        ApiKey.DELETE_GROUPS,
        2,
        lambda: DeleteGroupsRequest(groups_names=[f"g{number}" for number in range(50_000)]),
    ),
}


def described(name: str) -> Any:
    return DescribeConfigsResource(resource_type=4, resource_name=name, configuration_keys=None)


class Watch:
    """Asks a broker small things, and how much memory it has, until told to stop."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answers = 0
        self.most = 0

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with WireClient(self._broker.port, timeout_s=60) as client:
            while not self.answers or not self._stop.wait(0.01):
                assert client.call(ApiKey.API_VERSIONS, 2).error_code == ErrorCode.NONE
                self.answers += 1
                self.most = max(self.most, self._broker.resident_bytes())


def test_hostile_counts_cost_neither_memory_nor_the_others(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        before, pid = broker.resident_bytes(), broker.pid
        for what, (key, version, make) in ATTACKS.items():
            request = make()
            with Watch(broker) as watch, WireClient(broker.port, timeout_s=120) as client:
                began = time.monotonic()
                with suppress(ConnectionError):  # more than a reply may hold
                    client.call(key, version, request)
                assert time.monotonic() - began < 120
            assert watch.answers > 0, what
            assert watch.most - before < MOST_GROWTH, what
        assert broker.running
        assert broker.pid == pid
