"""Requests that make topics and add partitions."""

from collections.abc import Mapping

from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


def creation(
    *names: str,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreateTopicsRequest:
    """CreateTopics: each topic gets so many partitions of one replica, and these configs."""
    values = [
        CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()
    ]
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=values)
        for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=60_000, validate_only=validate_only)


def growth(name: str, count: int, *, validate_only: bool = False) -> CreatePartitionsRequest:
    """CreatePartitions: the topic shall have `count` partitions."""
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=validate_only)
