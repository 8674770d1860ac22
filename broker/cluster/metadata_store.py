"""The interface of the metadata store: a tree of nodes like ZooKeeper's, with Kafka's paths.

Stand-alone, `embedded_store.EmbeddedStore` keeps the tree in the first log directory; a cluster
will keep the same tree in ZooKeeper. A node has a value (bytes) and a version that grows by one
with each `put`. An ephemeral node lives as long as its owner's session: here, the process.

`apply` makes all of several changes or none (ZooKeeper's multi). A watch is persistent and
recursive, in ZooKeeper's terms: it is called on the event loop, in the order of the changes and
after they are durable, with the nodes at its path and below that were made, changed or deleted;
their values it must read. When `apply` returns, every watch has been called for that change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

ANY_VERSION = -1


class StoredNode(NamedTuple):
    """Value and version of a node."""

    value: bytes
    version: int


class NodeChange(Enum):
    """The kind of change that a watch gets."""

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
    """The medium failed: no part of the change was made."""


class NodeMissingError(MetadataStoreError):
    """The node does not exist."""


class NodeExistsError(MetadataStoreError):
    """A node to be created exists already."""


class VersionMismatchError(MetadataStoreError):
    """The node does not have the expected version: it was changed meanwhile."""


class NodeNotEmptyError(MetadataStoreError):
    """A node to be deleted has children."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node. Missing parents are made too, empty and not ephemeral."""

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


TreeOperation = Create | Put | Delete
Watcher = Callable[[Sequence[NodeEvent]], None]
"""Called with one or more changes; must be quick, because the store's next change waits for it."""


class MetadataStore(Protocol):
    """The tree. Errors are the subclasses of `MetadataStoreError`, and what the medium raises."""

    async def get(self, path: str) -> StoredNode | None:
        """Value and version, or None when there is no such node."""
        ...

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """`get` for each, one after the other."""
        ...

    async def children(self, path: str) -> list[str]:
        """Names (not paths) of the nodes below, sorted; none for a missing node."""
        ...

    async def apply(self, operations: Sequence[TreeOperation]) -> None:
        """Make all changes or none; they are durable when this returns."""
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
        """Call `watcher` with changes at `path` and below, until the result is called."""
        ...

    async def close(self) -> None:
        """Remove ephemeral nodes and release the medium."""
        ...
