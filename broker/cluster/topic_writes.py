"""The operations on the metadata tree that change topics, and those that undo them."""

from collections.abc import Iterator, Mapping

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.metadata_store import Create, Delete, MetadataStore, Put, TreeOperation
from broker.cluster.tree_values import (
    encode_config,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from storage.waits import PAUSE


class TopicWrites:
    """The writes of one controller; each partition's state holds `epoch`, the controller's own."""

    def __init__(self, store: MetadataStore, epoch: int) -> None:
        self._store = store
        self.epoch = epoch

    async def creation(self, topic: TopicImage) -> list[TreeOperation]:
        """Create a topic."""
        node = encode_topic(topic.topic_id, topic.partitions)
        return [
            Create(topic_config_path(topic.name), encode_config(topic.config)),
            Create(topic_path(topic.name), node),
            *await _listed(self._states(topic.name, topic.partitions)),
        ]

    async def growth(
        self, grown: TopicImage, added: Mapping[int, PartitionImage]
    ) -> list[TreeOperation]:
        """Add the partitions `added`, which `grown` includes."""
        return [
            Put(topic_path(grown.name), encode_topic(grown.topic_id, grown.partitions)),
            *await _listed(self._states(grown.name, added)),
        ]

    async def election(self, topic: TopicImage) -> list[TreeOperation]:
        """Write leaders, leader epochs and ISRs of all partitions."""
        operations: list[TreeOperation] = []
        for state in self._states(topic.name, topic.partitions):
            known = await self._store.get(state.path) is not None
            operations.append(Put(state.path, state.value) if known else state)
            await PAUSE
        return operations

    async def config(self, name: str, config: Mapping[str, str]) -> list[TreeOperation]:
        """Write a topic's own configs."""
        path, value = topic_config_path(name), encode_config(config)
        known = await self._store.get(path) is not None
        return [Put(path, value) if known else Create(path, value)]

    def _states(self, name: str, partitions: Mapping[int, PartitionImage]) -> Iterator[Create]:
        last: PartitionImage | None = None
        state = b""
        for index, partition in partitions.items():
            if partition is not last:  # in a new topic mostly all are one value
                last, state = partition, encode_partition_state(partition, self.epoch)
            yield Create(partition_state_path(name, index), state)


async def _listed(states: Iterator[Create]) -> list[Create]:
    operations = []
    for state in states:
        operations.append(state)
        await PAUSE
    return operations


def creation_undone(name: str) -> list[TreeOperation]:
    """Undo the creation of a topic."""
    return [
        Delete(topic_path(name), recursive=True),
        Delete(topic_config_path(name), recursive=True),
    ]


def growth_undone(topic: TopicImage, added: Mapping[int, PartitionImage]) -> list[TreeOperation]:
    """Undo the addition of partitions to `topic`, its image before."""
    return [
        Put(topic_path(topic.name), encode_topic(topic.topic_id, topic.partitions)),
        *(Delete(partition_state_path(topic.name, index)) for index in added),
    ]
