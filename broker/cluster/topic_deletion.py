"""Deletes topics, so that a crash in the middle is finished at the next start.

A deletion is marked in the tree before the first log goes, and unmarked together with the topic's
own nodes. The caller (the controller) makes sure that one change is under way at a time. After
Kafka's `TopicDeletionManager`.
"""

from collections.abc import Callable, Collection

import trio

from broker.cluster.image import MetadataImage
from broker.cluster.leadership import Replicas
from broker.cluster.metadata_store import Create, Delete, MetadataStore
from broker.cluster.tree_reader import read_topics
from broker.cluster.tree_values import (
    DELETE_TOPICS,
    deletion_path,
    topic_config_path,
    topic_path,
)
from protocol.types import TopicPartition


class TopicDeletions:
    """The topics whose deletion is under way."""

    def __init__(self, store: MetadataStore, image: MetadataImage, replicas: Replicas) -> None:
        self._store = store
        self._image = image
        self._replicas = replicas
        self._marked: set[str] = set()
        self.listeners: list[Callable[[Collection[str]], None]] = []
        """Called with the names of deleted topics, after the image has forgotten them."""

    def __contains__(self, name: str) -> bool:
        return name in self._marked

    def __len__(self) -> int:
        return len(self._marked)

    async def load(self) -> None:
        """Read which deletions the last run left unfinished."""
        self._marked = set(await self._store.children(DELETE_TOPICS))

    async def finish_all(self) -> None:
        """Finish them."""
        for name in sorted(self._marked):
            await self._finish(name)

    async def delete(self, name: str) -> None:
        """Remove a topic that is there, and its logs. Raises MetadataStoreError."""
        await self._store.apply([Create(deletion_path(name))])
        self._marked.add(name)
        await self._finish(name)

    async def _finish(self, name: str) -> None:
        topic = self._image.topic(name)
        if topic is None:
            stored = {found.name: found for found in await read_topics(self._store, only=name)}
            topic = stored.get(name)
        self._image.remove_topic(name)
        for index in () if topic is None else topic.partitions:
            self._replicas.delete_partition(TopicPartition(name, index))
            await trio.lowlevel.checkpoint()
        self._replicas.forget_topic(name)
        for listener in self.listeners:
            listener((name,))
        await self._store.apply(
            [
                Delete(topic_path(name), recursive=True),
                Delete(topic_config_path(name), recursive=True),
                Delete(deletion_path(name), recursive=True),
            ]
        )
        self._marked.discard(name)
