"""FindCoordinator over the wire (S-GRP-5)."""

from typing import Any

import pytest

from broker.cluster.image import BrokerImage, PartitionImage, TopicImage
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.api_calls import call
from tests.support.group_handlers import OTHER_ID, GroupApi, versions

KEY = ApiKey.FIND_COORDINATOR


def ask(api: GroupApi, version: int, *keys: str, kind: int = 0) -> list[Any]:
    """(error, node, host, port) per key."""
    fields: dict[str, Any] = {"key_type": kind} if version >= 1 else {}
    if version >= 4:
        fields["coordinator_keys"] = list(keys)
    else:
        (fields["key"],) = keys
    response = call(api.handlers[KEY], KEY, version, FindCoordinatorRequest(**fields))
    results = response.coordinators if version >= 4 else [response]
    if version >= 4:
        assert [one.key for one in results] == list(keys)
    return [(one.error_code, one.node_id, one.host, one.port) for one in results]


@pytest.mark.parametrize("version", versions(KEY))
def test_s_grp_5_the_topic_is_made_for_the_first_group(api: GroupApi, version: int) -> None:
    here = (0, 1, "127.0.0.1", 9092)
    assert ask(api, version, "g") == [here]
    assert ask(api, version, "g") == [here]
    assert api.maker.made == ["__consumer_offsets"]


@pytest.mark.parametrize("version", versions(KEY)[1:])
def test_s_txn_4_the_topic_is_made_for_the_first_transactional_id(
    api: GroupApi, version: int
) -> None:
    assert ask(api, version, "id", kind=1) == [(0, 1, "127.0.0.1", 9092)]
    assert api.maker.made == ["__transaction_state"]


def test_many_groups_at_once() -> None:
    assert len(ask(GroupApi(), 4, "a", "b", "c")) == 3


@pytest.mark.parametrize("version", [0, 1, 4, 6])
def test_s_grp_5_a_topic_that_cannot_be_made(api: GroupApi, version: int) -> None:
    api.maker.refusal = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)
    assert ask(api, version, "g") == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)]


@pytest.mark.parametrize("version", versions(KEY)[1:])
def test_other_kinds_of_keys(version: int) -> None:
    api = GroupApi()
    for kind in (2, 9):
        assert ask(api, version, "x", kind=kind) == [(ErrorCode.INVALID_REQUEST, -1, "", -1)]
    assert api.maker.made == []


def test_the_leader_of_the_groups_partition_by_the_clients_listener(api: GroupApi) -> None:
    partition = api.coordinator.partition_for("g")
    partitions = {
        index: PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
        for index in range(50)
    }
    partitions[partition] = PartitionImage(leader=2, leader_epoch=0, replicas=(2,), isr=(2,))
    topic = TopicImage(name="__consumer_offsets", topic_id=OTHER_ID, partitions=partitions)
    api.image.set_topic(topic)
    assert ask(api, 3, "g") == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)]
    endpoints = (
        Listener(name="OTHER", host="no", port=1, protocol="PLAINTEXT"),
        Listener(name="PLAINTEXT", host="two", port=9093, protocol="PLAINTEXT"),
    )
    api.image.set_broker(BrokerImage(broker_id=2, endpoints=endpoints))
    assert ask(api, 3, "g") == [(0, 2, "two", 9093)]


def test_a_partition_without_leader(api: GroupApi) -> None:
    nobody = PartitionImage(leader=-1, leader_epoch=0, replicas=(1,), isr=())
    topic = TopicImage(
        name="__consumer_offsets",
        topic_id=OTHER_ID,
        partitions=dict.fromkeys(range(50), nobody),
    )
    api.image.set_topic(topic)
    assert ask(api, 4, "g") == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)]
