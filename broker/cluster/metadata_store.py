"""The seam to where metadata lives: a tree of nodes shaped as ZooKeeper's, under Kafka's paths.

Stand-alone, `embedded_store.EmbeddedStore` keeps the tree in the first log directory; a cluster
will keep the same tree in ZooKeeper. A node has a value (bytes) and a version that grows by one
with each `put`. An ephemeral node lives as long as its owner's session: here, the process.

`apply` makes several changes or none (ZooKeeper's multi). A watch is what ZooKeeper calls a
persistent recursive one: it is told, on the event loop, in the order of the changes and after they
are durable, which nodes at its path and below were made, changed or deleted; what they hold now it
has to read. When `apply` returns, every watch has been told of that change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

ANY_VERSION = -1


class StoredNode(NamedTuple):
    """What a node holds."""

    value: bytes
    version: int


class NodeChange(Enum):
    """What a watch is told."""

    CREATED = auto()
    CHANGED = auto()
    DELETED = auto()


class NodeEvent(NamedTuple):
    """One node has changed."""

    path: str
    change: NodeChange


class MetadataStoreError(Exception):
    """A change that the tree refuses."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class StoreUnavailableError(MetadataStoreError):
    """The medium failed: nothing of the change stands."""


class NodeMissingError(MetadataStoreError):
    """The node, or the parent of a node to be created, is not there."""


class NodeExistsError(MetadataStoreError):
    """A node to be created is there already."""


class VersionMismatchError(MetadataStoreError):
    """The node was changed by somebody else meanwhile."""


class NodeNotEmptyError(MetadataStoreError):
    """A node to be deleted has children."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node. Missing parents are made too, empty and lasting."""

    path: str
    value: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Replace a node's value; `version` is the one expected."""

    path: str
    value: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node; with `recursive` all below it too, and a missing node is no error."""

    path: str
    version: int = ANY_VERSION
    recursive: bool = False


Operation = Create | Put | Delete
Watcher = Callable[[Sequence[NodeEvent]], None]
"""Told one or more changes; plain and quick, because the store's next change waits for it."""


class MetadataStore(Protocol):
    """The tree. Errors are the subclasses of `MetadataStoreError`, and what the medium raises."""

    async def get(self, path: str) -> StoredNode | None:
        """Value and version, or None when there is no such node."""
        ...

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """`get` for each of some hundred paths at most."""
        ...

    async def children(self, path: str) -> list[str]:
        """Names (not paths) of the nodes below, sorted; none for a missing node."""
        ...

    async def apply(self, operations: Sequence[Operation]) -> None:
        """All of it or nothing; durable when this returns."""
        ...

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        """One `Create`."""
        ...

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        """One `Put`; the new version."""
        ...

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """One `Delete`."""
        ...

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` what changes at `path` and below, until the result is called."""
        ...

    async def close(self) -> None:
        """Ephemeral nodes go, the medium is released."""
        ...
