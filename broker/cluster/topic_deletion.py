"""Deletes topics, so that the next start finishes a deletion that a crash cut short.

A deletion is marked in the tree before the first log is deleted, and the mark makes every broker's
`image_applier` delete its logs. The mark is removed together with the topic's nodes. The caller
(the controller) makes one change at a time. After Kafka's `TopicDeletionManager`.
"""

from broker.cluster.image_applier import ImageApplier
from broker.cluster.metadata_store import Create, Delete, MetadataStore
from broker.cluster.tree_values import (
    DELETE_TOPICS,
    deletion_path,
    topic_config_path,
    topic_path,
)


class TopicDeletions:
    """The topics whose deletion is under way."""

    def __init__(self, store: MetadataStore, applier: ImageApplier) -> None:
        self._store = store
        self._applier = applier
        self._marked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._marked

    def __len__(self) -> int:
        return len(self._marked)

    async def load(self) -> None:
        """Read which deletions the last run left unfinished."""
        self._marked = set(await self._store.children(DELETE_TOPICS))

    async def finish_all(self) -> None:
        """Remove the nodes of those topics; `ImageApplier.open_all` has deleted their logs."""
        for name in sorted(self._marked):
            await self._forget(name)

    async def delete(self, name: str) -> None:
        """Delete an existing topic and its logs. Raises MetadataStoreError, KafkaError."""
        with self._applier.heard() as outcomes:
            await self._store.apply([Create(deletion_path(name))])
            self._marked.add(name)
            await self._applier.catch_up()
        refused = outcomes[name].refused
        if refused is not None:
            raise refused
        await self._forget(name)

    async def _forget(self, name: str) -> None:
        with self._applier.heard():
            await self._store.apply(
                [
                    Delete(topic_path(name), recursive=True),
                    Delete(topic_config_path(name), recursive=True),
                    Delete(deletion_path(name), recursive=True),
                ]
            )
            self._marked.discard(name)
            await self._applier.catch_up()
