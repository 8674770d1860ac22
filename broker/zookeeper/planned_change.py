"""One request that changes the tree: the caller's operations, and further ones that they need.

Missing parents are made before the caller's operations, nodes below a recursive deletion are
deleted before, and notifications are made beside. If ZooKeeper refuses one of these, the caller
does not get that error: another writer has come in between, and the change is to be planned again.
The same holds when one of the caller's operations is refused because of them.
"""

from collections.abc import Sequence
from typing import Any

from broker.cluster.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStoreError,
    NodeMissingError,
    NodeNotEmptyError,
    TreeOperation,
)
from broker.cluster.node_tree import parent_of
from broker.zookeeper.operations import first_refusal, refused


class Overtaken(Exception):
    """Another writer has come in between: the change is to be planned again."""


class PlannedChange:
    """Operations of one request; those of the caller are marked."""

    __slots__ = ("_gone", "_own", "operations", "session_id")

    def __init__(self) -> None:
        self.operations: list[TreeOperation] = []
        self._own: list[tuple[int, TreeOperation]] = []
        """The caller's operations, and the position of each."""
        self.session_id: int | None = None
        """The session in which the change must be made; None for any."""
        self._gone: set[str] = set()
        """Nodes that this change deletes with all below, and has not made again."""

    def add(self, *operations: TreeOperation) -> None:
        """Add operations that the caller's operations need."""
        self.operations += operations

    def add_own(self, operation: TreeOperation, below: Sequence[str] | None = None) -> None:
        """Add an operation of the caller.

        `below`: for a recursive deletion, the node and all below, parents first; none if the node
        is not there, which makes it a check of nothing.
        """
        if below is not None:
            self.operations += (Delete(path) for path in reversed(below[1:]))
            self._gone.update(below)
        elif isinstance(operation, Create) and self._gone:
            self._make_again(operation.path)
        self._own.append((len(self.operations), operation))
        if below is not None and not below:
            self.operations.append(Check(""))
        else:
            self.operations.append(operation)

    def _make_again(self, path: str) -> None:
        """Make the nodes above `path` that are deleted by now."""
        above = []
        parent = parent_of(path)
        while parent in self._gone:
            above.append(parent)
            parent = parent_of(parent)
        self.operations += (Create(parent) for parent in reversed(above))
        self._gone.difference_update(above, (path,))

    def made_under(self, path: str) -> list[str]:
        """Paths at `path` and below that this change makes, parents first."""
        return [
            one.path
            for one in self.operations
            if isinstance(one, Create) and f"{one.path}/".startswith(f"{path}/")
        ]

    def own_results(self, results: Sequence[Any]) -> list[int]:
        """The version of each of the caller's nodes after the change; 0 of one made or deleted."""
        return [version_in(results[at]) for at, _ in self._own]

    def refuse(self, results: Sequence[Any]) -> None:
        """Raise the refusal of the request, if it was refused: our error, or `Overtaken`."""
        refusal = first_refusal(results)
        if refusal is not None:
            raise self._reason(*refusal)

    def _reason(self, at: int, error: BaseException) -> Exception:
        own = next((one for position, one in self._own if position == at), None)
        if own is None:
            return Overtaken()
        reason: MetadataStoreError = refused(own, error)
        if isinstance(own, Create) and isinstance(reason, NodeMissingError):
            return Overtaken()  # its parent has gone
        if (
            isinstance(own, Delete)
            and own.recursive
            and isinstance(reason, NodeMissingError | NodeNotEmptyError)
        ):
            return Overtaken()
        return reason


def version_in(result: Any) -> int:
    """The version that kazoo's answer to one operation tells; 0 if it tells none."""
    return int(getattr(result, "version", 0))
