"""The interface of the metadata store: a tree of nodes like ZooKeeper's, with Kafka's paths.

Stand-alone, `embedded_store.EmbeddedStore` keeps the tree in the first log directory; a cluster
keeps the same tree in ZooKeeper (`broker.zookeeper.zookeeper_store.ZooKeeperStore`). A node has a
value (bytes) and a version that grows by one with each `put`. An ephemeral node lives as long as
its owner's session: stand-alone, the process.

`apply` makes all of several changes or none (ZooKeeper's multi). A watch is persistent: it is
called on the event loop, in the order of the changes and after they are durable, with the nodes
that were made, changed or deleted; their values it must read. Stand-alone these are the node at its
path and all below; over ZooKeeper what `ZooKeeperStore.watch` says. When `apply` returns, every
watch has been called for that change.
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
    created: int = 0
    """The number of the change that made it (ZooKeeper's czxid); 0 stand-alone."""


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
    """The medium failed: no part of the change was made.

    Over ZooKeeper: it does not answer. The change may be made nevertheless, if it was on its way.
    """


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
    sequential: bool = False
    """Whether a number of ten digits, which the parent counts, is put after the path."""


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, and refuse all unless the node has this version (-1: any)."""

    path: str
    version: int = ANY_VERSION


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


TreeOperation = Create | Put | Delete | Check
Applied = int | MetadataStoreError
"""The outcome of one change: its node's version (0: made or deleted), or why it was refused."""
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

    async def apply_each(
        self, operations: Sequence[TreeOperation], checks: Sequence[Check] = ()
    ) -> list[Applied]:
        """Make each change on its own, in their order; return what became of each.

        For thousands of changes that do not depend on each other. `checks` hold with each of them;
        if one does not, its error is raised (`VersionMismatchError`, `NodeMissingError`), and the
        changes that were made before stay. After Kafka's requests that are wrapped with a check of
        the controller's epoch (`KafkaZkClient.retryRequestsUntilConnected`).
        """
        ...

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        """One `Create`."""
        await self.apply([Create(path, value, ephemeral)])

    async def put(self, path: str, value: bytes, *, version: int = ANY_VERSION) -> int:
        """One `Put`; the new version."""
        ...

    async def delete(self, path: str, *, version: int = ANY_VERSION) -> None:
        """One `Delete`."""
        await self.apply([Delete(path, version)])

    def watch(self, path: str, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with changes at `path` and below, until the result is called."""
        ...

    async def close(self) -> None:
        """Remove ephemeral nodes and release the medium."""
        ...
