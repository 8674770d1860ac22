"""The metadata tree of a stand-alone broker, kept by a medium (`broker.world.metadata_medium`).

Reads are answered from memory (`NodeTree`). Writes go to the medium in a worker, one at a time;
when a write is durable it changes memory and watches are called, before the next write begins.
Ephemeral nodes are kept in memory only: the process is the session.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import trio

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    MetadataStoreError,
    NodeEvent,
    Operation,
    Put,
    StoredNode,
    StoreUnavailableError,
    Watcher,
)
from broker.cluster.node_tree import Changes, NodeTree, Planning, TreeNode
from broker.world.metadata_medium import MediumError, MediumFailed, MetadataMedium, Row
from broker.world.turns import wait_for_turn
from broker.world.workers import Workers

_NODES_PER_TURN: Final = 512
"""Nodes gone through between two turns: about a millisecond."""


class EmbeddedStore:
    """Implements `MetadataStore`. Made by `open`."""

    def __init__(self, medium: MetadataMedium, workers: Workers, tree: NodeTree) -> None:
        self._medium = medium
        self._workers = workers
        self._tree = tree
        self._writing = trio.Lock()
        self._watchers: list[tuple[str, Watcher]] = []
        self._closed = False
        self.fresh = medium.fresh
        """Whether this opening made the medium, so that it has no earlier metadata."""

    @classmethod
    async def open(
        cls, opener: Callable[[str], MetadataMedium], path: str, workers: Workers
    ) -> "EmbeddedStore":
        """Open or make the medium at `path`. Raises MetadataStoreError if it cannot be used."""

        def load() -> tuple[MetadataMedium, list[Row]]:
            medium = opener(path)
            try:
                return medium, medium.load()
            except BaseException:
                medium.close()
                raise

        try:
            medium, rows = await workers.in_thread(load)
        except MediumError as error:
            raise MetadataStoreError(error.path, error.reason) from error
        tree = NodeTree((row.path, TreeNode(row.value, row.version)) for row in rows)
        return cls(medium, workers, tree)

    async def get(self, path: str) -> StoredNode | None:
        """See `MetadataStore`."""
        await trio.lowlevel.checkpoint()
        node = self._tree.get(path)
        return None if node is None else StoredNode(node.value, node.version)

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """See `MetadataStore`."""
        await trio.lowlevel.checkpoint()
        found = map(self._tree.get, paths)
        return [None if node is None else StoredNode(node.value, node.version) for node in found]

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore`."""
        await trio.lowlevel.checkpoint()
        return self._tree.children(path)

    async def apply(self, operations: Sequence[Operation]) -> None:
        """See `MetadataStore`."""
        events: list[NodeEvent] = []
        async with self._writing:
            planning = Planning(self._tree)
            await self._in_turns(planning.steps(operations))
            changes = planning.changes
            with trio.CancelScope(shield=True):
                if any(node is None or not node.ephemeral for node in changes.values()):
                    await self._write(changes)
                await self._in_turns(self._tree.installing(changes, events))
                await self._tell(events)

    async def _tell(self, events: Sequence[NodeEvent]) -> None:
        """Call the watches, holding the write lock, so that they get changes in their order."""
        for watched, watcher in tuple(self._watchers):
            told: list[NodeEvent] = []
            await self._in_turns(_below(watched, events, told))
            if told:
                watcher(told)

    async def _in_turns(self, steps: Iterator[None]) -> None:
        for count, _ in enumerate(steps, 1):
            if not count % _NODES_PER_TURN:
                await wait_for_turn()

    async def _write(self, changes: Changes) -> None:
        """Write to the medium; not cancelled once begun, so memory always follows the medium."""
        try:
            await self._workers.in_thread(_write, self._medium, changes)
        except MediumFailed as error:
            raise StoreUnavailableError(error.path, error.reason) from error

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        """See `MetadataStore`."""
        await self.apply([Create(path, value, ephemeral)])

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        """See `MetadataStore`."""
        await self.apply([Put(path, value, version)])
        node = self._tree.get(path)
        return -1 if node is None else node.version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """See `MetadataStore`."""
        await self.apply([Delete(path, version)])

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
            self._tree.install(dict.fromkeys(self._tree.ephemeral_paths()))
            with trio.CancelScope(shield=True):
                await self._workers.in_thread(self._medium.close)


def _below(watched: str, events: Iterable[NodeEvent], told: list[NodeEvent]) -> Iterator[None]:
    below = watched + "/"
    for event in events:
        if event.path.startswith(below) or event.path == watched:
            told.append(event)
        yield


def _write(medium: MetadataMedium, changes: Changes) -> None:
    kept = [Row(p, n.value, n.version) for p, n in changes.items() if n and not n.ephemeral]
    gone = [path for path, node in changes.items() if node is None]
    medium.write(kept, gone)
