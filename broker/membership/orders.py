"""The controller's orders, as values: the handlers make them of its requests of any version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.cluster.image import BrokerImage, PartitionImage
from protocol.types import ZERO_UUID, TopicPartition


class Sender(NamedTuple):
    """Which controller sent an order, and to which life of this broker."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


@dataclass(slots=True, kw_only=True)
class TopicOrders:
    """LeaderAndIsr: partitions of one topic of which this broker has a replica."""

    topic_id: bytes
    """Zero if the controller knows none."""
    partitions: dict[int, PartitionImage] = field(default_factory=dict)
    new: set[int] = field(default_factory=set)
    """Those that no broker has had before, so that no log of them can be anywhere."""


class StopOrder(NamedTuple):
    """StopReplica: the order for one partition."""

    leader_epoch: int
    """-1 unknown; -2: the topic is being deleted, whatever the epoch is."""
    delete: bool
    """Whether its log is deleted."""


@dataclass(slots=True, kw_only=True)
class TopicStates:
    """UpdateMetadata: partitions of one topic."""

    topic_id: bytes
    partitions: dict[int, PartitionImage | None] = field(default_factory=dict)
    """None for a partition of a topic that is being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate:
    """UpdateMetadata: all brokers that live, and partitions that have changed."""

    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicStates]


StopOrders = Mapping[TopicPartition, StopOrder]


def partition_states(request: Any) -> Iterator[tuple[str, bytes, Any]]:
    """The partitions of a LeaderAndIsr or UpdateMetadata, with the names and ids of their topics.

    The first versions list partitions, later ones topics; the id is zero where there is none.
    """
    for state in request.ungrouped_partition_states:
        yield state.topic_name, ZERO_UUID, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state
