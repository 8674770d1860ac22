"""ZooKeeper in this process: one tree, and a session for each broker. Without sockets or time.

    zookeeper = MemoryZooKeeper()
    store = await zookeeper.open(settings)      what `ZooKeeperStore.open` gives
    store.expire()                              its session ends, and another one begins
    store.lose()                                its process has died: the session ends

As `ZooKeeperStore` promises: changes are made in an order that all sessions see; a watch tells of
the node and its children, and in the trees that have a notification log of whatever is below.
"""

from collections.abc import Callable, Sequence
from typing import Any

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Applied,
    Check,
    Create,
    Delete,
    NodeEvent,
    Put,
    StoredNode,
    StoreUnavailableError,
    TreeOperation,
    Watcher,
)
from broker.cluster.node_tree import Changes, NodeTree, Planning, parent_of
from broker.zookeeper.change_logs import log_of
from broker.zookeeper.session import SessionState
from broker.zookeeper.zookeeper_store import ZooKeeperStatistics
from storage.waits import PAUSE, Lock


class MemoryZooKeeper:
    """The tree that all brokers of a cluster share."""

    def __init__(self) -> None:
        self.tree = NodeTree()
        self.writing = Lock()
        self.stores: list[MemoryTree] = []
        self._made: dict[str, int] = {}
        """Path to the number of the change that made it."""
        self.owners: dict[str, int] = {}
        """Path of an ephemeral node to its session."""
        self._changes = 0
        self._sessions = 100

    async def open(self, settings: Any) -> "MemoryTree":
        """Begin a session."""
        store = MemoryTree(self, settings.session_timeout_s)
        self.stores.append(store)
        return store

    def new_session(self) -> int:
        """The id of another session."""
        self._sessions += 1
        return self._sessions

    def node(self, path: str) -> StoredNode | None:
        """What is read of a path."""
        node = self.tree.get(path)
        if node is None:
            return None
        return StoredNode(node.value, node.version, self._made.get(path, 0))

    async def install(self, changes: Changes, session: int) -> None:
        """Make planned changes, and tell everybody; called with the lock."""
        self._changes += 1
        before = {path: self.tree.get(path) for path in changes}
        events = await self.tree.install(changes)
        for path, node in changes.items():
            if node is None:
                self._made.pop(path, None)
                self.owners.pop(path, None)
            elif before[path] is None:
                self._made[path] = self._changes
                if node.ephemeral:
                    self.owners[path] = session
        for store in self.stores:
            store.tell(events)

    async def end(self, session: int) -> None:
        """Remove what a session has made."""
        async with self.writing:
            gone = [path for path, owner in self.owners.items() if owner == session]
            if gone:
                await self.install(dict.fromkeys(gone), session)


class MemoryTree:
    """One broker's `ZooKeeperStore`."""

    def __init__(self, zookeeper: MemoryZooKeeper, session_timeout_s: float) -> None:
        self._all = zookeeper
        self.session_timeout_s = session_timeout_s
        self.session_id = zookeeper.new_session()
        self.state = SessionState.CONNECTED
        self._ended: set[int] = set()
        self._watchers: list[tuple[str, Watcher]] = []
        self._of_session: list[Callable[[SessionState], None]] = []

    @property
    def ended_sessions(self) -> frozenset[int]:
        return frozenset(self._ended)

    def watch_session(self, watcher: Callable[[SessionState], None]) -> Callable[[], None]:
        self._of_session.append(watcher)
        return lambda: self._of_session.remove(watcher)

    def statistics(self) -> ZooKeeperStatistics:
        return ZooKeeperStatistics(
            state=self.state, in_flight=0, times_connected=1, times_suspended=0, times_expired=0
        )

    async def expire(self) -> None:
        """End the session, and begin another one."""
        self._ended.add(self.session_id)
        await self._all.end(self.session_id)
        self.session_id = self._all.new_session()
        for state in (SessionState.EXPIRED, SessionState.CONNECTED):
            for watcher in tuple(self._of_session):
                watcher(state)

    async def lose(self) -> None:
        """The process is gone, and so is its session, as ZooKeeper sees it."""
        self.state = SessionState.CLOSED
        await self._all.end(self.session_id)

    async def close(self) -> None:
        if self.state is not SessionState.CLOSED:
            await self.lose()

    # ---- reading

    async def get(self, path: str) -> StoredNode | None:
        await self._expect_open(path)
        return self._all.node(path)

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        return [await self.get(path) for path in paths]

    async def children(self, path: str) -> list[str]:
        await self._expect_open(path)
        return self._all.tree.children(path)

    async def owner(self, path: str) -> int | None:
        await self._expect_open(path)
        if self._all.tree.get(path) is None:
            return None
        return self._all.owners.get(path, 0)

    async def _expect_open(self, path: str) -> None:
        await PAUSE
        if self.state is SessionState.CLOSED:
            raise StoreUnavailableError(path, "the session is closed")

    # ---- writing

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        async with self._all.writing:
            await self._expect_open("apply")
            planning = Planning(self._all.tree)
            await planning.plan(operations)
            await self._all.install(planning.changes, self.session_id)

    async def apply_each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check] = ()
    ) -> list[Applied]:
        async with self._all.writing:
            await self._expect_open("apply")
            planning = Planning(self._all.tree)
            await planning.plan(checks)
            applied = await planning.plan_each(operations)
            await self._all.install(planning.changes, self.session_id)
            return applied

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        await self.apply([Create(path, value, ephemeral)])

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        await self.apply([Put(path, value, version)])
        node = self._all.tree.get(path)
        return -1 if node is None else node.version

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        await self.apply([Delete(path, version)])

    # ---- watches

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        watch = (path, watcher)
        self._watchers.append(watch)
        return lambda: self._watchers.remove(watch) if watch in self._watchers else None

    def tell(self, events: Sequence[NodeEvent]) -> None:
        """Tell the watches of changes, if the process lives."""
        if self.state is SessionState.CLOSED:
            return
        for path, watcher in tuple(self._watchers):
            deep = log_of(path) is not None
            told = [
                event
                for event in events
                if event.path == path
                or parent_of(event.path) == path
                or (deep and event.path.startswith(path + "/"))
            ]
            if told:
                watcher(told)
