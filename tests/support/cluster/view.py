"""The cluster as one broker describes it by Metadata: brokers, controller, leaders, replicas."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.wire_client import WireClient

VERSION: Final = 9
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition."""

    leader: int
    """-1: none."""
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """It has a leader and all its replicas are in sync."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The whole."""

    controller: int
    brokers: Mapping[int, int]
    """Broker id to port, for the listener that answered."""
    partitions: Mapping[Partition, PartitionView]

    def under_replicated(self) -> dict[Partition, PartitionView]:
        """Partitions that lack a leader or a replica in sync."""
        return {place: each for place, each in self.partitions.items() if not each.is_whole}


def view_of(port: int, *, timeout_s: float = 5) -> ClusterView | None:
    """Ask the broker that listens there; None if it does not answer in time."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    try:
        with WireClient(port, timeout_s=timeout_s) as client:
            answer: MetadataResponse = client.call(ApiKey.METADATA, VERSION, request)
    except (OSError, struct.error):
        return None
    return ClusterView(
        controller=answer.controller_id,
        brokers={broker.node_id: broker.port for broker in answer.brokers},
        partitions={
            (str(topic.name), each.partition_index): PartitionView(
                leader=each.leader_id,
                epoch=each.leader_epoch,
                replicas=tuple(each.replica_nodes),
                isr=tuple(each.isr_nodes),
            )
            for topic in answer.topics
            if topic.error_code == ErrorCode.NONE
            for each in topic.partitions
        },
    )
