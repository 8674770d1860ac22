"""A metadata tree in memory that several sessions share, as those of brokers share ZooKeeper's.

Each session implements `MetadataStore`. A test may end it, which removes its ephemeral nodes, cut
it off for a while, or have the answers of its writes lost. Every operation lets others run first.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Applied,
    Check,
    Create,
    Delete,
    MetadataStoreError,
    NodeChange,
    NodeEvent,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    StoredNode,
    StoreUnavailableError,
    TreeOperation,
    VersionMismatchError,
    Watcher,
)
from storage.waits import PAUSE


@dataclass
class _Node:
    value: bytes
    version: int
    created: int
    owner: "TreeSession | None"


class SharedTree:
    """The nodes."""

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {}
        self.changes = 0
        self.sessions: list[TreeSession] = []
        self._made: Counter[str] = Counter()
        """Sequential nodes made so far, by parent."""
        self.history: list[tuple[str, bytes | None]] = []
        """Every change, in order: the path, and its new value; None: removed."""

    def session(self) -> "TreeSession":
        """Begin a session."""
        session = TreeSession(self)
        self.sessions.append(session)
        return session

    def value(self, path: str) -> bytes | None:
        """A node's value, or None."""
        node = self.nodes.get(path)
        return None if node is None else node.value

    def names(self, path: str) -> list[str]:
        """Names of children, sorted."""
        start = path.rstrip("/") + "/"
        return sorted(
            other[len(start) :]
            for other in self.nodes
            if other.startswith(start) and "/" not in other[len(start) :]
        )

    def apply(self, operations: Sequence[TreeOperation], owner: "TreeSession | None") -> list[int]:
        """Make all changes or none."""
        changing = sum(not isinstance(one, Check) for one in operations)
        before = self._copy() if changing > 1 else self.nodes  # a refused single change makes none
        events: list[NodeEvent] = []
        log = len(self.history)
        try:
            self.changes += 1
            versions = [self._make(operation, owner, events) for operation in operations]
        except MetadataStoreError:
            self.nodes = before
            del self.history[log:]
            raise
        self._tell(events)
        return versions

    def _copy(self) -> dict[str, _Node]:
        return {path: _Node(**vars(node)) for path, node in self.nodes.items()}

    def _make(
        self, operation: TreeOperation, owner: "TreeSession | None", events: list[NodeEvent]
    ) -> int:
        path = operation.path
        node = self.nodes.get(path)
        if isinstance(operation, Create):
            if node is not None:
                raise NodeExistsError(path, "exists already")
            parent = path.rpartition("/")[0]
            if parent and parent not in self.nodes:
                self._make(Create(parent), None, events)
            if operation.sequential:
                self._made[parent] += 1
                path += f"{self._made[parent]:010d}"
            self.nodes[path] = _Node(
                operation.value, 0, self.changes, owner if operation.ephemeral else None
            )
            events.append(NodeEvent(path, NodeChange.CREATED))
            self.history.append((path, operation.value))
            return 0
        if isinstance(operation, Delete) and operation.recursive:
            for other in sorted(self.nodes, reverse=True):
                if other == path or other.startswith(path + "/"):
                    self._remove(other, events)
            return 0
        if node is None:
            raise NodeMissingError(path, "no such node")
        if operation.version not in (ANY_VERSION, node.version):
            raise VersionMismatchError(path, f"version is {node.version}")
        if isinstance(operation, Delete):
            if self.names(path):
                raise NodeNotEmptyError(path, "has children")
            self._remove(path, events)
        elif isinstance(operation, Put):
            node.value = operation.value
            node.version += 1
            events.append(NodeEvent(path, NodeChange.CHANGED))
            self.history.append((path, operation.value))
        return node.version

    def _remove(self, path: str, events: list[NodeEvent]) -> None:
        del self.nodes[path]
        events.append(NodeEvent(path, NodeChange.DELETED))
        self.history.append((path, None))

    def _tell(self, events: Sequence[NodeEvent]) -> None:
        for session in self.sessions:
            session.tell(events)

    def end(self, session: "TreeSession") -> None:
        """End a session: its ephemeral nodes go."""
        events: list[NodeEvent] = []
        for path in [path for path, node in self.nodes.items() if node.owner is session]:
            self._remove(path, events)
        self._tell(events)


class TreeSession:
    """One client's view. Implements `MetadataStore`."""

    def __init__(self, tree: SharedTree) -> None:
        self.tree = tree
        self.cut_off = False
        """Whether nothing reaches the tree; watches hear of changes later."""
        self.lose_answers = 0
        """The number of next writes that are made, but not answered."""
        self._watchers: list[tuple[str, Watcher]] = []
        self._untold: list[NodeEvent] = []
        self._life = 0

    def tell(self, events: Sequence[NodeEvent]) -> None:
        """Call watches, those of children and of their values too."""
        if self.cut_off:
            self._untold += events
            return
        for path, watcher in list(self._watchers):
            told = [event for event in events if self._is_watched(path, event)]
            if told:
                watcher(told)

    def _is_watched(self, path: str, event: NodeEvent) -> bool:
        return path in (event.path, event.path.rpartition("/")[0])

    def reconnect(self) -> None:
        """The tree can be reached again."""
        self.cut_off = False
        untold, self._untold = self._untold, []
        self.tell(untold)

    def expire(self) -> None:
        """End the session, its nodes and its requests under way; a new one takes its place."""
        self._life += 1
        self.tree.end(self)

    async def _reach(self, path: str) -> None:
        life = self._life
        await PAUSE
        if self.cut_off or life != self._life:
            raise StoreUnavailableError(path, "cut off")

    async def get(self, path: str) -> StoredNode | None:
        await self._reach(path)
        node = self.tree.nodes.get(path)
        return None if node is None else StoredNode(node.value, node.version, node.created)

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        return [await self.get(path) for path in paths]

    async def children(self, path: str) -> list[str]:
        await self._reach(path)
        return self.tree.names(path)

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        await self._reach(operations[0].path)
        self.tree.apply(operations, self)
        self._lose(operations[0].path)

    def _lose(self, path: str) -> None:
        if self.lose_answers:
            self.lose_answers -= 1
            raise StoreUnavailableError(path, "the answer was lost")

    async def apply_each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check] = ()
    ) -> list[Applied]:
        applied: list[Applied] = []
        for operation in operations:
            await self._reach(operation.path)
            self.tree.apply(checks, self) if checks else None
            try:
                applied.append(self.tree.apply([operation], self)[0])
                self._lose(operation.path)
            except StoreUnavailableError as error:
                applied[-1] = error
            except MetadataStoreError as error:
                applied.append(error)
        return applied

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        await self.apply([Create(path, value, ephemeral)])

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        await self._reach(path)
        return self.tree.apply([Put(path, value, version)], self)[0]

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        await self.apply([Delete(path, version)])

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        watch = (path, watcher)
        self._watchers.append(watch)
        return lambda: self._watchers.remove(watch) if watch in self._watchers else None

    async def close(self) -> None:
        self.tree.end(self)
