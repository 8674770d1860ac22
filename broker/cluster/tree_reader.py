"""Reads the whole metadata tree, as the controller does at start. Raises BadValueError."""

from broker.cluster.image import PartitionImage, TopicImage
from broker.cluster.metadata_store import MetadataStore
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


async def read_topics(store: MetadataStore, *, only: str | None = None) -> list[TopicImage]:
    """Every topic in the tree, or the one called `only`."""
    names = await store.children(TOPICS) if only is None else [only]
    topics = []
    for name in names:
        node = await store.get(topic_path(name))
        if node is None:
            continue
        assignment = decode_topic(name, node.value)
        partitions: dict[int, PartitionImage] = {}
        for index, replicas in assignment.replicas.items():
            state = await store.get(partition_state_path(name, index))
            partitions[index] = (
                new_partition(replicas, replicas)
                if state is None
                else decode_partition_state(name, index, state.value, replicas)
            )
        config_path = topic_config_path(name)
        config = await store.get(config_path)
        topics.append(
            TopicImage(
                name=name,
                topic_id=assignment.topic_id or ZERO_UUID,
                partitions=partitions,
                config={} if config is None else decode_config(config_path, config.value),
            )
        )
    return topics


async def read_controller_epoch(store: MetadataStore) -> int:
    """How many controllers there have been."""
    node = await store.get(CONTROLLER_EPOCH)
    return 0 if node is None else decode_controller_epoch(node.value)
