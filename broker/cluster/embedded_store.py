"""The metadata tree of a stand-alone broker, kept by a medium (`broker.world.metadata_medium`).

Reads are answered from memory (`NodeTree`). Writes go to the medium in a thread, one at a time;
when a write is durable it changes memory and watches are called, before the next write begins.
Ephemeral nodes are kept in memory only: the process is the session.

A write that is ended early, after it has reached the medium, may leave memory behind it. Only the
end of the broker ends a write: requests that change the tree are finished even if their client
has gone. The next start reads the medium.
"""

from collections.abc import Callable, Sequence

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Applied,
    Check,
    MetadataStore,
    MetadataStoreError,
    NodeEvent,
    Put,
    StoredNode,
    StoreUnavailableError,
    TreeOperation,
    Watcher,
)
from broker.cluster.node_tree import Changes, NodeTree, Planning, TreeNode
from broker.world.metadata_medium import MediumError, MediumFailed, MetadataMedium, NodeRow
from storage.waits import PAUSE, Lock, call


class EmbeddedStore(MetadataStore):
    """The tree of a stand-alone broker. Made by `open`."""

    def __init__(self, medium: MetadataMedium, tree: NodeTree) -> None:
        self._medium = medium
        self._tree = tree
        self._writing = Lock()
        self._watchers: list[tuple[str, Watcher]] = []
        self._closed = False
        self.fresh = medium.fresh
        """Whether this opening made the medium, so that it has no earlier metadata."""

    @classmethod
    async def open(cls, opener: Callable[[str], MetadataMedium], path: str) -> "EmbeddedStore":
        """Open or make the medium at `path`. Raises MetadataStoreError if it cannot be used."""
        try:
            medium, rows = await call(_load, opener, path)
        except MediumError as error:
            raise MetadataStoreError(error.path, error.reason) from error
        tree = NodeTree((row.path, TreeNode(row.value, row.version)) for row in rows)
        return cls(medium, tree)

    async def get(self, path: str) -> StoredNode | None:
        """See `MetadataStore`."""
        node = self._tree.get(path)
        return None if node is None else StoredNode(node.value, node.version)

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """See `MetadataStore`."""
        found = []
        for path in paths:
            node = self._tree.get(path)
            found.append(None if node is None else StoredNode(node.value, node.version))
            await PAUSE
        return found

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore`."""
        return self._tree.children(path)

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        """See `MetadataStore`."""
        async with self._writing:
            planning = Planning(self._tree)
            await planning.plan(operations)
            await self._make(planning.changes)

    async def apply_each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check] = ()
    ) -> list[Applied]:
        """See `MetadataStore`. The changes that are not refused are written together."""
        async with self._writing:
            planning = Planning(self._tree)
            await planning.plan(checks)
            applied = await planning.plan_each(operations)
            await self._make(planning.changes)
            return applied

    async def _make(self, changes: Changes) -> None:
        if any(node is None or not node.ephemeral for node in changes.values()):
            await self._write(changes)
        await self._tell(await self._tree.install(changes))

    async def _tell(self, events: Sequence[NodeEvent]) -> None:
        """Call the watches, holding the write lock, so that they get changes in their order."""
        watches: list[tuple[str, str, Watcher, list[NodeEvent]]] = [
            (path, path + "/", watcher, []) for path, watcher in self._watchers
        ]
        for event in events:
            for watched, below, _, told in watches:
                if event.path.startswith(below) or event.path == watched:
                    told.append(event)
            await PAUSE
        for _, _, watcher, told in watches:
            if told:
                watcher(told)

    async def _write(self, changes: Changes) -> None:
        try:
            await call(_write, self._medium, changes)
        except MediumFailed as error:
            raise StoreUnavailableError(error.path, error.reason) from error

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        """See `MetadataStore`."""
        await self.apply([Put(path, value, version)])
        node = self._tree.get(path)
        return -1 if node is None else node.version

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """See `MetadataStore`."""
        watch = (path, watcher)
        self._watchers.append(watch)

        def unwatch() -> None:
            if watch in self._watchers:
                self._watchers.remove(watch)

        return unwatch

    async def close(self) -> None:
        """See `MetadataStore`. Safe to call twice."""
        async with self._writing:
            if self._closed:
                return
            self._closed = True
            await self._tree.install(dict.fromkeys(self._tree.ephemeral_paths()))
            await call(self._medium.close)


def _load(
    opener: Callable[[str], MetadataMedium], path: str
) -> tuple[MetadataMedium, list[NodeRow]]:
    medium = opener(path)
    try:
        return medium, medium.load()
    except BaseException:
        medium.close()
        raise


def _write(medium: MetadataMedium, changes: Changes) -> None:
    kept = [NodeRow(p, n.value, n.version) for p, n in changes.items() if n and not n.ephemeral]
    gone = [path for path, node in changes.items() if node is None]
    medium.write(kept, gone)
