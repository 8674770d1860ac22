"""The tree in memory, from which the embedded store answers reads, and the rules of changes.

Without I/O. `Planning` checks a list of operations against the current tree and computes what each
node becomes; `NodeTree.install` makes these changes and returns the events for watches. Between the
two the embedded store writes to the disk, so memory is never ahead of it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

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
    TreeOperation,
    VersionMismatchError,
)
from storage.waits import PAUSE

_NODES_AT_ONCE: Final = 1024
"""Nodes marked as deleted between two pauses: less than a tenth of a millisecond."""

_DIGITS: Final = 10
"""The digits of the number at the end of a sequential node's path."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node; ephemeral ones are never written to the disk."""

    value: bytes
    version: int = 0
    ephemeral: bool = False


Changes = dict[str, TreeNode | None]
"""Path to the node's new content; None: it is deleted."""


def parent_of(path: str) -> str:
    """The path above; the empty text is the root."""
    return path.rpartition("/")[0]


def numbered(path: str, number: int) -> str:
    """The path of a sequential node, as ZooKeeper writes the number."""
    return f"{path}{number:0{_DIGITS}d}"


class NodeTree:
    """Paths to nodes, with the names below each node."""

    def __init__(self, nodes: Iterable[tuple[str, TreeNode]] = ()) -> None:
        self._nodes: dict[str, TreeNode] = {}
        self._children: dict[str, set[str]] = {}
        self._made: dict[str, int] = {}
        """Children made so far, by parent; only of parents that `children_made` has counted."""
        for path, node in nodes:
            self._set(path, node)

    def get(self, path: str) -> TreeNode | None:
        """The node, or None."""
        return self._nodes.get(path)

    def children(self, path: str) -> list[str]:
        """Names below `path`, sorted."""
        return sorted(self._children.get(path, ()))

    def ephemeral_paths(self) -> list[str]:
        """Paths of the nodes that end with the session."""
        return [path for path, node in self._nodes.items() if node.ephemeral]

    async def install(self, changes: Changes) -> list[NodeEvent]:
        """Make the changes, node by node; return the events for watches, in order."""
        events: list[NodeEvent] = []
        for path, node in changes.items():
            known = path in self._nodes
            if node is not None:
                self._set(path, node)
                events.append(NodeEvent(path, NodeChange.CHANGED if known else NodeChange.CREATED))
            elif known:
                self._remove(path)
                events.append(NodeEvent(path, NodeChange.DELETED))
            await PAUSE
        return events

    def names_below(self, path: str) -> Collection[str]:
        """Names of the nodes right below `path`, in no order."""
        return self._children.get(path, ())

    def children_made(self, path: str) -> int:
        """How many children were made below `path`: the number of the next sequential one.

        ZooKeeper keeps the count with the node. Here it is in memory, and a start takes the least
        one with which no number comes twice among the children that are there.
        """
        made = self._made.get(path)
        if made is None:
            names = self._children.get(path, ())
            numbers = [int(end) for name in names if (end := name[-_DIGITS:]).isdecimal()]
            made = self._made[path] = max(len(names), max(numbers, default=-1) + 1)
        return made

    def _set(self, path: str, node: TreeNode) -> None:
        parent, _, name = path.rpartition("/")
        if parent in self._made and path not in self._nodes:
            self._made[parent] += 1
        self._nodes[path] = node
        self._children.setdefault(parent, set()).add(name)

    def _remove(self, path: str) -> None:
        del self._nodes[path]
        self._made.pop(path, None)
        parent, _, name = path.rpartition("/")
        siblings = self._children.get(parent)
        if siblings is not None:
            siblings.discard(name)
            if not siblings:
                del self._children[parent]

    def _check(self) -> None:
        """Invariants, for tests: every node hangs on its parent's list, and no list is stale."""
        listed = {f"{parent}/{name}" for parent, names in self._children.items() for name in names}
        assert listed == set(self._nodes)
        assert all(not parent or parent in self._nodes for parent in self._children)


class Planning:
    """Computes what a list of operations changes, node by node.

    The tree must not change meanwhile.
    """

    def __init__(self, tree: NodeTree) -> None:
        self._tree = tree
        self.changes: Changes = {}
        self._added: dict[str, list[str]] = {}
        """Paths of planned new nodes, by parent path."""

    async def plan(self, operations: Iterable[TreeOperation]) -> None:
        """Fill `changes`. Raises the errors of `metadata_store`."""
        for operation in operations:
            match operation:
                case Create():
                    self._create(operation)
                case Put():
                    node = self._expect(operation.path, operation.version)
                    self.changes[operation.path] = TreeNode(
                        operation.value, node.version + 1, node.ephemeral
                    )
                case Delete():
                    await self._delete(operation)
                case Check():
                    self._expect(operation.path, operation.version)
            await PAUSE

    async def plan_each(self, operations: Iterable[TreeOperation]) -> list[Applied]:
        """Fill `changes` with those operations that are not refused; what becomes of each."""
        applied: list[Applied] = []
        for operation in operations:
            try:
                await self.plan((operation,))
            except MetadataStoreError as refusal:
                applied.append(refusal)
            else:
                node = self.changes.get(operation.path)
                applied.append(0 if node is None else node.version)
        return applied

    def _current(self, path: str) -> TreeNode | None:
        return self.changes[path] if path in self.changes else self._tree.get(path)

    def _expect(self, path: str, version: int) -> TreeNode:
        node = self._current(path)
        if node is None:
            raise NodeMissingError(path, "no such node")
        if version not in (ANY_VERSION, node.version):
            raise VersionMismatchError(path, f"version is {node.version}, not {version}")
        return node

    def _make(self, path: str, node: TreeNode) -> None:
        self.changes[path] = node
        self._added.setdefault(parent_of(path), []).append(path)

    def _create(self, operation: Create) -> None:
        path, parent = operation.path, parent_of(operation.path)
        if operation.sequential:
            added = len(self._added.get(parent, ()))
            path = numbered(path, self._tree.children_made(parent) + added)
        if self._current(path) is not None:
            raise NodeExistsError(path, "exists already")
        missing = []
        while parent and self._current(parent) is None:
            missing.append(parent)
            parent = parent_of(parent)
        for above in reversed(missing):
            self._make(above, TreeNode(b""))
        self._make(path, TreeNode(operation.value, 0, operation.ephemeral))

    async def _delete(self, operation: Delete) -> None:
        if not operation.recursive:
            self._expect(operation.path, operation.version)
            if any(True for _ in self._alive_below(operation.path)):
                raise NodeNotEmptyError(operation.path, "has children")
            self.changes[operation.path] = None
            return
        found = []
        if self._current(operation.path) is not None:
            self._expect(operation.path, operation.version)
            found.append(operation.path)
        pending = [operation.path]
        while pending:
            alive = list(self._alive_below(pending.pop()))
            found.extend(alive)
            pending.extend(alive)
            await PAUSE
        found.reverse()  # deepest first
        for at in range(0, len(found), _NODES_AT_ONCE):
            self.changes |= dict.fromkeys(found[at : at + _NODES_AT_ONCE])
            await PAUSE

    def _alive_below(self, path: str) -> Iterator[str]:
        names, added = self._tree.names_below(path), self._added.get(path, ())
        if names or added:  # mostly not: a leaf
            for child in dict.fromkeys((*(f"{path}/{name}" for name in names), *added)):
                if self._current(child) is not None:
                    yield child
