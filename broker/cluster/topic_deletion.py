"""Deletes topics, so that the next start finishes a deletion that a crash cut short.

A deletion is marked in the tree before the first log is deleted, and the mark makes every broker's
`image_applier` delete its logs. The mark is removed together with the topic's nodes. The caller
(the controller) makes one change at a time. After Kafka's `TopicDeletionManager`.
"""

from collections.abc import Sequence

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
        await self._forget(sorted(self._marked))

    async def delete(self, names: Sequence[str]) -> dict[str, Exception]:
        """Delete existing topics and their logs; return the errors of those that were refused.

        Raises MetadataStoreError.
        """
        with self._applier.heard() as outcomes:
            await self._store.apply([Create(deletion_path(name)) for name in names])
            self._marked.update(names)
            await self._applier.catch_up()
        refused = {name: error for name in names if (error := outcomes[name].refused) is not None}
        await self._forget([name for name in names if name not in refused])
        return refused

    async def _forget(self, names: Sequence[str]) -> None:
        if not names:
            return
        paths = [
            path
            for name in names
            for path in (topic_path(name), topic_config_path(name), deletion_path(name))
        ]
        with self._applier.heard():
            await self._store.apply([Delete(path, recursive=True) for path in paths])
            self._marked.difference_update(names)
            await self._applier.catch_up()
