"""ZooKeeper in this process: one tree, and a session for each broker. Without sockets or time.

    zookeeper = MemoryZooKeeper()
    store = await zookeeper.open(settings)      what `ZooKeeperStore.open` returns
    store.expire()                              its session ends, and another one begins
    store.lose()                                its process has died: the session ends

`MemoryTree` keeps the promises of `ZooKeeperStore`: all sessions see changes in the same order; a
watch gets the changes of the node and its children, and those of everything below in the trees that
have a notification log.
"""

from collections.abc import Callable
from typing import Any

from broker.cluster.metadata_store import NodeEvent, StoreUnavailableError
from broker.zookeeper.change_logs import log_of
from broker.zookeeper.session import SessionState
from tests.support.shared_tree import SharedTree, TreeSession


class MemoryZooKeeper(SharedTree):
    """The tree that all brokers of a cluster share."""

    def __init__(self) -> None:
        super().__init__()
        self._session_ids = 100

    async def open(self, settings: Any) -> "MemoryTree":
        """Begin a session."""
        store = MemoryTree(self, settings.session_timeout_s)
        self.sessions.append(store)
        return store

    def new_session_id(self) -> int:
        """Return the id of another session."""
        self._session_ids += 1
        return self._session_ids


class MemoryTree(TreeSession):
    """One broker's `ZooKeeperStore`."""

    tree: MemoryZooKeeper

    def __init__(self, tree: MemoryZooKeeper, session_timeout_s: float) -> None:
        super().__init__(tree)
        self.session_timeout_s = session_timeout_s
        self.session_id = tree.new_session_id()
        self.state = SessionState.CONNECTED
        self._ended: set[int] = set()
        self._of_session: list[Callable[[SessionState], None]] = []

    @property
    def ended_sessions(self) -> frozenset[int]:
        return frozenset(self._ended)

    def watch_session(self, watcher: Callable[[SessionState], None]) -> Callable[[], None]:
        self._of_session.append(watcher)
        return lambda: self._of_session.remove(watcher)

    def expire(self) -> None:
        """End the session, and begin another one."""
        self._ended.add(self.session_id)
        super().expire()
        self.session_id = self.tree.new_session_id()
        for state in (SessionState.EXPIRED, SessionState.CONNECTED):
            for watcher in tuple(self._of_session):
                watcher(state)

    def lose(self) -> None:
        """End the session as ZooKeeper does after the death of the process."""
        self.state = SessionState.CLOSED
        self.tree.end(self)

    async def close(self) -> None:
        if self.state is not SessionState.CLOSED:
            self.lose()

    async def owner(self, path: str) -> int | None:
        await self._reach(path)
        node = self.tree.nodes.get(path)
        if node is None:
            return None
        return node.owner.session_id if isinstance(node.owner, MemoryTree) else 0

    async def _reach(self, path: str) -> None:
        await super()._reach(path)
        if self.state is SessionState.CLOSED:
            raise StoreUnavailableError(path, "the session is closed")

    def _is_watched(self, path: str, event: NodeEvent) -> bool:
        if self.state is SessionState.CLOSED:
            return False
        below = log_of(path) is not None and event.path.startswith(path + "/")
        return below or super()._is_watched(path, event)
