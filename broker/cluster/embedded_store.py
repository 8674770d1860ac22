"""The metadata tree of a stand-alone broker: one SQLite file in the first log directory.

Format: table `node(path TEXT PRIMARY KEY, value BLOB, version INTEGER)`; `PRAGMA user_version` is
the layout's number. Write-ahead log and `synchronous=FULL`: what `apply` has returned for survives
kill -9 and power loss; a crash in the middle of `apply` leaves all or nothing of it. Kafka looks at
directories only, so the file does not disturb it in a shared log directory.

Reads answer from memory (`NodeTree`). Writes go to the disk in a thread, one at a time, and change
memory and call watches when they are durable. Ephemeral nodes are kept in memory only: the process
is the session. `sqlite3` is imported when a store is opened.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    MetadataStoreError,
    Operation,
    Put,
    StoredNode,
    StoreUnavailableError,
    Watcher,
)
from broker.cluster.node_tree import Changes, NodeTree, TreeNode

if TYPE_CHECKING:
    import sqlite3

FILE_NAME = "metadata.sqlite"
IN_MEMORY = ":memory:"
"""A path for a store that leaves nothing behind."""
_LAYOUT = 1


class EmbeddedStore:
    """Implements `MetadataStore`. Made by `open`."""

    def __init__(
        self, path: str, database: "sqlite3.Connection", tree: NodeTree, *, fresh: bool
    ) -> None:
        self._path = path
        self._database = database
        self._tree = tree
        self._writing = trio.Lock()
        self._watchers: dict[str, list[Watcher]] = {}
        self._closed = False
        self.fresh = fresh
        """True when the file was made by this opening: nothing was known before."""

    @classmethod
    async def open(cls, path: str) -> "EmbeddedStore":
        """Open or make the file. Raises MetadataStoreError when it is not one of ours."""
        return await trio.to_thread.run_sync(cls._open, path)

    @classmethod
    def _open(cls, path: str) -> "EmbeddedStore":
        import sqlite3

        # The tree's writes are serialized by `_writing`; each may run in another thread.
        database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            layout = database.execute("PRAGMA user_version").fetchone()[0]
            fresh = layout == 0
            if layout not in (0, _LAYOUT):
                raise MetadataStoreError(path, f"has layout {layout}, this broker knows {_LAYOUT}")
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=FULL")
            if fresh:
                database.execute("BEGIN IMMEDIATE")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS node"
                    " (path TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL)"
                    " WITHOUT ROWID"
                )
                database.execute(f"PRAGMA user_version={_LAYOUT}")
                database.execute("COMMIT")
            rows = database.execute("SELECT path, value, version FROM node").fetchall()
        except sqlite3.DatabaseError as error:
            database.close()
            raise MetadataStoreError(path, f"cannot be used: {error}") from error
        except MetadataStoreError:
            database.close()
            raise
        tree = NodeTree((row[0], TreeNode(row[1], row[2])) for row in rows)
        return cls(path, database, tree, fresh=fresh)

    async def get(self, path: str) -> StoredNode | None:
        """See `MetadataStore`."""
        await trio.lowlevel.checkpoint()
        node = self._tree.get(path)
        return None if node is None else StoredNode(node.value, node.version)

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore`."""
        await trio.lowlevel.checkpoint()
        return self._tree.children(path)

    async def apply(self, operations: Sequence[Operation]) -> None:
        """See `MetadataStore`."""
        async with self._writing:
            changes = self._tree.plan(operations)
            if any(node is None or not node.ephemeral for node in changes.values()):
                # Cannot be cancelled once the thread runs, so memory follows the disk always.
                await trio.to_thread.run_sync(self._write, changes)
            events = self._tree.install(changes)
        for path, change in events:
            for watcher in tuple(self._watchers.get(path, ())):
                watcher(path, change)

    def _write(self, changes: Changes) -> None:
        import sqlite3

        try:
            self._commit(changes)
        except sqlite3.Error as error:
            # Disk full, file damaged or closed: nothing of the change stands.
            raise StoreUnavailableError(self._path, str(error)) from error

    def _commit(self, changes: Changes) -> None:
        database = self._database
        kept = [(p, n.value, n.version) for p, n in changes.items() if n and not n.ephemeral]
        gone = [(path,) for path, node in changes.items() if node is None]
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("DELETE FROM node WHERE path = ?", gone)
            database.executemany(
                "INSERT INTO node (path, value, version) VALUES (?, ?, ?)"
                " ON CONFLICT (path) DO UPDATE SET value = excluded.value,"
                " version = excluded.version",
                kept,
            )
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

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
        watchers = self._watchers.setdefault(path, [])
        watchers.append(watcher)

        def unwatch() -> None:
            if watcher in watchers:
                watchers.remove(watcher)

        return unwatch

    async def close(self) -> None:
        """See `MetadataStore`. Safe to call twice."""
        async with self._writing:
            if self._closed:
                return
            self._closed = True
            self._tree.install(dict.fromkeys(self._tree.ephemeral_paths()))
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._database.close)
