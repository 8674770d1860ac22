"""CreateTopics, DeleteTopics, CreatePartitions."""

from typing import Any

import pytest

from broker.api import create_partitions, create_topics, delete_topics
from broker.api.create_partitions import CreatePartitionsHandler
from broker.api.create_topics import CreateTopicsHandler
from broker.api.delete_topics import DeleteTopicsHandler
from broker.cluster.topic_plan import NewTopic
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.types import ZERO_UUID
from tests.support.api_calls import NO_QUOTAS, acall
from tests.support.cluster_fakes import Cluster, start_cluster


def topic(name: str, partitions: int = 1, factor: int = 1, **config: str | None) -> object:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in config.items()
        ],
    )


async def created(
    creator: CreateTopicsHandler, version: int, *topics: object, validate_only: bool = False
) -> Any:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    return await acall(creator, ApiKey.CREATE_TOPICS, version, request)


@pytest.fixture
def creator(cluster: Cluster) -> CreateTopicsHandler:
    return CreateTopicsHandler(cluster.controller, cluster.configs, NO_QUOTAS)


@pytest.fixture
def remover(cluster: Cluster) -> DeleteTopicsHandler:
    return DeleteTopicsHandler(cluster.controller, cluster.image, NO_QUOTAS)


@pytest.mark.parametrize("version", range(create_topics.API.versions[1] + 1))
async def test_create_topics_in_every_version(
    creator: CreateTopicsHandler, cluster: Cluster, version: int
) -> None:
    asked = topic("a", 2, retention_ms="7"), topic("b c"), topic("d", factor=2)
    response = await created(creator, version, *asked)
    results = {result.name: result for result in response.topics}
    made = cluster.image.topic("a")
    assert made is not None
    assert [r.error_code for r in results.values()] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ]
    if version >= 1:
        assert results["a"].error_message is None
        assert results["d"].error_message == (
            "Replication factor: 2 larger than available brokers: 1."
        )
    if version >= 5:
        assert (results["a"].num_partitions, results["a"].replication_factor) == (2, 1)
        configs = {entry.name: entry for entry in results["a"].configs}
        assert configs["retention.ms"].value == "7"
        assert configs["retention.ms"].config_source == 1
        assert configs["segment.bytes"].config_source == 5
        assert results["d"].num_partitions == -1
    if version >= 7:
        assert results["a"].topic_id == made.topic_id
        assert results["d"].topic_id == ZERO_UUID


async def test_s_meta_2_defaults_duplicates_and_assignments() -> None:
    cluster = await start_cluster(num_partitions="4")
    creator = CreateTopicsHandler(cluster.controller, cluster.configs, NO_QUOTAS)
    manual = topic("manual", -1, -1)
    manual.assignments = [  # type: ignore[attr-defined]
        CreatableReplicaAssignment(partition_index=index, broker_ids=[0]) for index in (0, 1)
    ]
    twice = topic("twice-assigned", -1, -1)
    twice.assignments = [  # type: ignore[attr-defined]
        CreatableReplicaAssignment(partition_index=0, broker_ids=[0]) for _ in range(2)
    ]
    asked = topic("dup"), topic("default", -1, -1), topic("dup"), manual, twice
    response = await created(creator, 4, *asked)
    assert {result.name: result.error_code for result in response.topics} == {
        "dup": ErrorCode.INVALID_REQUEST,
        "default": ErrorCode.NONE,
        "manual": ErrorCode.NONE,
        "twice-assigned": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }
    assert len(response.topics) == 4
    default, made = cluster.image.topic("default"), cluster.image.topic("manual")
    assert default is not None
    assert made is not None
    assert (len(default.partitions), len(made.partitions)) == (4, 2)
    assert cluster.image.topic("dup") is None
    again = await created(creator, 4, topic("manual"))
    assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert again.topics[0].error_message == "Topic 'manual' already exists."


async def test_s_cfg_4_configs_of_a_new_topic(creator: CreateTopicsHandler) -> None:
    asked: list[dict[str, str | None]] = [
        {"no_such": "1"},
        {"segment_bytes": "x"},
        {"segment_bytes": None},
    ]
    topics = [topic(f"t{number}", **config) for number, config in enumerate(asked)]
    response = await created(creator, 7, *topics)
    assert [r.error_code for r in response.topics] == [ErrorCode.INVALID_CONFIG] * 3
    assert response.topics[0].error_message == "Unknown topic config name: no.such"


async def test_s_cfg_4_validate_only_describes_and_changes_nothing(
    creator: CreateTopicsHandler, cluster: Cluster
) -> None:
    for version in range(1, 8):
        response = await created(creator, version, topic("t", 3), validate_only=True)
        assert response.topics[0].error_code == ErrorCode.NONE
    assert response.topics[0].num_partitions == 3
    assert response.topics[0].topic_id == ZERO_UUID
    assert list(cluster.image.topics()) == []


async def test_the_name_of_kafkas_metadata_log_is_no_topics(
    creator: CreateTopicsHandler, cluster: Cluster
) -> None:
    """Its directory is what a Kafka on the same disk keeps its metadata in."""
    for validate_only in (True, False):
        wanted = topic("__cluster_metadata")
        (result,) = (await created(creator, 7, wanted, validate_only=validate_only)).topics
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message.endswith("is prohibited.")
    assert not list(cluster.image.topics())


@pytest.mark.parametrize("version", range(delete_topics.API.versions[1] + 1))
async def test_delete_topics_in_every_version(
    remover: DeleteTopicsHandler, cluster: Cluster, version: int
) -> None:
    ids = {}
    for name in ("a", "b"):
        ids[name] = (await cluster.controller.create_topic(NewTopic(name=name))).topic_id
    wanted = ["a", "missing", "b", "b"]
    request = DeleteTopicsRequest(timeout_ms=1)
    if version >= 6:
        request.topics = [DeleteTopicState(name=name) for name in wanted]
    else:
        request.topic_names = wanted
    response = await acall(remover, ApiKey.DELETE_TOPICS, version, request)
    assert [(r.name, r.error_code) for r in response.responses] == [
        ("a", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    if version >= 5:
        assert response.responses[0].error_message is None
        assert response.responses[2].error_message == "Duplicate topic name."
    if version >= 6:
        told = [result.topic_id for result in response.responses]
        assert told == [ids["a"], ZERO_UUID, ZERO_UUID, ZERO_UUID]
    assert [topic.name for topic in cluster.image.topics()] == ["b"]


async def test_delete_topics_by_id(remover: DeleteTopicsHandler, cluster: Cluster) -> None:
    ids = {}
    for name in ("a", "b"):
        ids[name] = (await cluster.controller.create_topic(NewTopic(name=name))).topic_id
    request = DeleteTopicsRequest(
        topics=[
            DeleteTopicState(name=None, topic_id=ids["a"]),
            DeleteTopicState(name=None, topic_id=b"?" * 16),
            DeleteTopicState(name="b", topic_id=ids["b"]),
            DeleteTopicState(name=None),
        ]
    )
    response = await acall(remover, ApiKey.DELETE_TOPICS, 6, request)
    assert [(r.name, r.error_code) for r in response.responses] == [
        ("a", ErrorCode.NONE),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("b", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.INVALID_REQUEST),
    ]
    assert response.responses[0].topic_id == ids["a"]


async def test_s_meta_2_deletion_switched_off() -> None:
    cluster = await start_cluster(delete_topic_enable="false")
    await cluster.controller.create_topic(NewTopic(name="a"))
    handler = DeleteTopicsHandler(cluster.controller, cluster.image, NO_QUOTAS, enabled=False)
    for version, code in (
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
    ):
        request = DeleteTopicsRequest(topic_names=["a"])
        response = await acall(handler, ApiKey.DELETE_TOPICS, version, request)
        assert response.responses[0].error_code == code


@pytest.mark.parametrize("version", range(create_partitions.API.versions[1] + 1))
async def test_s_meta_2_create_partitions_answers_once_per_topic(
    cluster: Cluster, version: int
) -> None:
    handler = CreatePartitionsHandler(cluster.controller, cluster.image, NO_QUOTAS)
    for name in ("a", "b", "c"):
        await cluster.controller.create_topic(NewTopic(name=name, partitions=2))

    def wish(name: str, count: int, assignments: list[list[int]] | None = None) -> object:
        return CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None
            if assignments is None
            else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
        )

    request = CreatePartitionsRequest(
        topics=[
            wish("a", 4),
            wish("b", 1),
            wish("missing", 5),
            wish("c", 3, [[0]]),
            wish("b", 9),
        ],
        timeout_ms=1000,
    )
    response = await acall(handler, ApiKey.CREATE_PARTITIONS, version, request)
    assert [(r.name, r.error_code) for r in response.results] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_REQUEST),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("c", ErrorCode.NONE),
    ]
    counts = {topic.name: len(topic.partitions) for topic in cluster.image.topics()}
    assert counts == {"a": 4, "b": 2, "c": 3}
    request = CreatePartitionsRequest(topics=[wish("a", 8)], validate_only=True)
    response = await acall(handler, ApiKey.CREATE_PARTITIONS, version, request)
    assert response.results[0].error_code == ErrorCode.NONE
    request = CreatePartitionsRequest(topics=[wish("a", 3)])
    response = await acall(handler, ApiKey.CREATE_PARTITIONS, version, request)
    assert response.results[0].error_code == ErrorCode.INVALID_PARTITIONS
    assert "would not be an increase" in response.results[0].error_message
    a = cluster.image.topic("a")
    assert a is not None
    assert len(a.partitions) == 4
