"""Reads topics from the metadata tree: whole, or only what has changed. Raises BadValueError."""

from collections.abc import Mapping, Sequence
from typing import Final

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.metadata_store import MetadataStore
from broker.cluster.topic_news import TopicNews
from broker.cluster.topic_plan import new_partition
from broker.cluster.tree_values import (
    CONTROLLER_EPOCH,
    TOPICS,
    decode_config,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from protocol.types import ZERO_UUID
from storage.waits import PAUSE

_MOST_KNOWN: Final = 1024
"""The most cached values of state nodes, by which partitions with equal states share one value."""


class TopicReader:
    """Makes images of topics. Equal states of partitions are decoded once."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._decoded: dict[tuple[bytes, tuple[int, ...]], PartitionImage] = {}

    async def read_all(self) -> list[TopicImage]:
        """Every topic in the tree."""
        topics = []
        for name in await self._store.children(TOPICS):
            topic = await self.read(name)
            if topic is not None:
                topics.append(topic)
            await PAUSE
        return topics

    async def read(
        self, name: str, known: TopicImage | None = None, news: TopicNews | None = None
    ) -> TopicImage | None:
        """Return the topic as it is in the tree, or None.

        With `known`, an image of the topic, only the nodes that `news` names are read again; the
        rest is taken from `known`.
        """
        config_path = topic_config_path(name)
        if known is None or news is None or news.assignment:
            node, own = await self._store.get_many([topic_path(name), config_path])
            if node is None:
                return None
            assignment = decode_topic(name, node.value)
            topic_id, replicas = assignment.topic_id or ZERO_UUID, assignment.replicas
            if news is None or (known is not None and known.topic_id != topic_id):
                known = None
        else:
            own = await self._store.get(config_path) if news.config else None
            topic_id = known.topic_id
            replicas = {index: one.replicas for index, one in known.partitions.items()}
        kept: dict[int, PartitionImage] = {}
        if known is not None and news is not None:
            kept = {
                index: partition
                for index, partition in known.partitions.items()
                if index not in news.states and replicas.get(index) == partition.replicas
            }
        states = kept | await self._read_states(
            name, replicas, [index for index in replicas if index not in kept]
        )
        if known is not None and news is not None and not news.config:
            config = known.config
        else:
            config = {} if own is None else decode_config(config_path, own.value)
        return TopicImage(
            name=name,
            topic_id=topic_id,
            partitions={index: states[index] for index in replicas},
            config=config,
        )

    async def _read_states(
        self, name: str, replicas: Mapping[int, tuple[int, ...]], wanted: Sequence[int]
    ) -> dict[int, PartitionImage]:
        nodes = await self._store.get_many([partition_state_path(name, i) for i in wanted])
        states: dict[int, PartitionImage] = {}
        for index, node in zip(wanted, nodes, strict=True):
            states[index] = (
                new_partition(replicas[index], replicas[index])
                if node is None
                else self._decode(name, index, node.value, replicas[index])
            )
            await PAUSE
        return states

    def _decode(
        self, name: str, index: int, value: bytes, replicas: tuple[int, ...]
    ) -> PartitionImage:
        key = (value, replicas)
        found = self._decoded.get(key)
        if found is None:
            if len(self._decoded) >= _MOST_KNOWN:
                self._decoded.clear()
            found = self._decoded[key] = decode_partition_state(name, index, value, replicas)
        return found


async def read_topics(store: MetadataStore) -> list[TopicImage]:
    """Every topic in the tree."""
    return await TopicReader(store).read_all()


async def read_controller_epoch(store: MetadataStore) -> int:
    """Return the epoch of the last controller; 0 if there was none."""
    node = await store.get(CONTROLLER_EPOCH)
    return 0 if node is None else decode_controller_epoch(node.value)
