"""The operations on the metadata tree that change topics, and those that undo them.

They are built in turns, because a topic may have ten thousand partitions.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.metadata_store import Create, Delete, MetadataStore, Operation, Put
from broker.cluster.tree_values import (
    encode_config,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from broker.world.turns import Turns

_PARTITIONS_PER_LOOK: Final = 64
_STATES_AT_ONCE: Final = 256


class TopicWrites:
    """The writes of one controller; each partition's state holds `epoch`, the controller's own."""

    def __init__(self, store: MetadataStore, epoch: int) -> None:
        self._store = store
        self.epoch = epoch

    async def creation(self, topic: TopicImage, turns: Turns) -> list[Operation]:
        """Create a topic."""
        node = encode_topic(topic.topic_id, topic.partitions)
        return [
            Create(topic_config_path(topic.name), encode_config(topic.config)),
            Create(topic_path(topic.name), node),
            *await self._states(topic.name, topic.partitions, turns),
        ]

    async def growth(
        self, grown: TopicImage, added: Mapping[int, PartitionImage], turns: Turns
    ) -> list[Operation]:
        """Add the partitions `added`, which `grown` includes."""
        return [
            Put(topic_path(grown.name), encode_topic(grown.topic_id, grown.partitions)),
            *await self._states(grown.name, added, turns),
        ]

    async def election(self, topic: TopicImage, turns: Turns) -> list[Operation]:
        """Write leaders, leader epochs and ISRs of all partitions."""
        left = iter(await self._states(topic.name, topic.partitions, turns))
        operations: list[Operation] = []
        while some := list(islice(left, _STATES_AT_ONCE)):
            known = await self._store.get_many([state.path for state in some])
            operations.extend(
                state if node is None else Put(state.path, state.value)
                for state, node in zip(some, known, strict=True)
            )
        return operations

    async def config(self, name: str, config: Mapping[str, str]) -> list[Operation]:
        """Write a topic's own configs."""
        path, value = topic_config_path(name), encode_config(config)
        known = await self._store.get(path) is not None
        return [Put(path, value) if known else Create(path, value)]

    async def _states(
        self, name: str, partitions: Mapping[int, PartitionImage], turns: Turns
    ) -> list[Create]:
        operations: list[Create] = []
        last: PartitionImage | None = None
        state = b""
        for count, (index, partition) in enumerate(partitions.items(), 1):
            if partition is not last:  # in a new topic mostly all are one value
                last, state = partition, encode_partition_state(partition, self.epoch)
            operations.append(Create(partition_state_path(name, index), state))
            if not count % _PARTITIONS_PER_LOOK:
                await turns.next()
        return operations


def creation_undone(name: str) -> list[Operation]:
    """Undo the creation of a topic."""
    return [
        Delete(topic_path(name), recursive=True),
        Delete(topic_config_path(name), recursive=True),
    ]


def growth_undone(topic: TopicImage, added: Mapping[int, PartitionImage]) -> list[Operation]:
    """Undo the addition of partitions to `topic`, its image before."""
    return [
        Put(topic_path(topic.name), encode_topic(topic.topic_id, topic.partitions)),
        *(Delete(partition_state_path(topic.name, index)) for index in added),
    ]
