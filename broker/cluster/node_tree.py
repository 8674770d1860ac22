"""The tree in memory: what the embedded store answers from, and the rules of every change.

Synchronous and without I/O. `plan` checks a list of operations against the tree as it is and
returns what each node becomes; `install` makes it so and says which watches to call. Between the
two the embedded store writes to the disk, so memory never runs ahead of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broker.cluster.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    NodeChange,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Operation,
    Put,
    VersionMismatchError,
)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node; ephemeral ones are never written to the disk."""

    value: bytes
    version: int = 0
    ephemeral: bool = False


Changes = dict[str, TreeNode | None]
"""Path to what it becomes; None: it goes."""


def parent_of(path: str) -> str:
    """The path above; the empty text is the root."""
    return path.rpartition("/")[0]


class NodeTree:
    """Paths to nodes, with the names below each node."""

    def __init__(self, nodes: Iterable[tuple[str, TreeNode]] = ()) -> None:
        self._nodes: dict[str, TreeNode] = {}
        self._children: dict[str, set[str]] = {}
        for path, node in nodes:
            self._set(path, node)

    def get(self, path: str) -> TreeNode | None:
        """The node, or None."""
        return self._nodes.get(path)

    def children(self, path: str) -> list[str]:
        """Names below `path`, sorted."""
        return sorted(self._children.get(path, ()))

    def ephemeral_paths(self) -> list[str]:
        """Nodes that end with the session."""
        return [path for path, node in self._nodes.items() if node.ephemeral]

    def plan(self, operations: Sequence[Operation]) -> Changes:
        """What the operations change, checked in order, each seeing those before it.

        Raises the errors of `metadata_store`; then nothing has changed.
        """
        changes: Changes = {}
        for operation in operations:
            match operation:
                case Create():
                    self._plan_create(operation, changes)
                case Put():
                    node = self._expect(operation.path, operation.version, changes)
                    changes[operation.path] = TreeNode(
                        operation.value, node.version + 1, node.ephemeral
                    )
                case Delete():
                    self._plan_delete(operation, changes)
        return changes

    def install(self, changes: Changes) -> list[tuple[str, NodeChange]]:
        """Make the changes; what watchers of which paths must be told."""
        events: list[tuple[str, NodeChange]] = []
        parents: dict[str, None] = {}
        for path, node in changes.items():
            known = path in self._nodes
            if node is None:
                if known:
                    self._remove(path)
                    events.append((path, NodeChange.DELETED))
                    parents[parent_of(path)] = None
                continue
            self._set(path, node)
            events.append((path, NodeChange.CHANGED if known else NodeChange.CREATED))
            if not known:
                parents[parent_of(path)] = None
        events.extend((path, NodeChange.CHILDREN) for path in parents)
        return events

    def _current(self, path: str, changes: Changes) -> TreeNode | None:
        return changes[path] if path in changes else self._nodes.get(path)

    def _expect(self, path: str, version: int, changes: Changes) -> TreeNode:
        node = self._current(path, changes)
        if node is None:
            raise NodeMissingError(path, "no such node")
        if version not in (ANY_VERSION, node.version):
            raise VersionMismatchError(path, f"version is {node.version}, not {version}")
        return node

    def _plan_create(self, operation: Create, changes: Changes) -> None:
        if self._current(operation.path, changes) is not None:
            raise NodeExistsError(operation.path, "exists already")
        missing = []
        parent = parent_of(operation.path)
        while parent and self._current(parent, changes) is None:
            missing.append(parent)
            parent = parent_of(parent)
        for path in reversed(missing):
            changes[path] = TreeNode(b"")
        changes[operation.path] = TreeNode(operation.value, 0, operation.ephemeral)

    def _plan_delete(self, operation: Delete, changes: Changes) -> None:
        below = self._below(operation.path, changes)
        if operation.recursive:
            for path in below:
                changes[path] = None
            if self._current(operation.path, changes) is not None:
                changes[operation.path] = None
            return
        self._expect(operation.path, operation.version, changes)
        if below:
            raise NodeNotEmptyError(operation.path, "has children")
        changes[operation.path] = None

    def _below(self, path: str, changes: Changes) -> list[str]:
        """Everything under `path`, deepest first."""
        found: list[str] = []
        pending = [path]
        while pending:
            top = pending.pop()
            names = {f"{top}/{name}" for name in self._children.get(top, ())}
            names.update(child for child in changes if parent_of(child) == top)
            alive = [child for child in names if self._current(child, changes) is not None]
            found.extend(alive)
            pending.extend(alive)
        found.reverse()
        return found

    def _set(self, path: str, node: TreeNode) -> None:
        self._nodes[path] = node
        parent, _, name = path.rpartition("/")
        self._children.setdefault(parent, set()).add(name)

    def _remove(self, path: str) -> None:
        del self._nodes[path]
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
