"""Changes of the tree as one request of ZooKeeper (`multi`), and its answer as ours.

Paths of the tree are below the chroot. Nodes that Kafka makes without a value have none at all
(null), not an empty one. A refused operation is found by its position: ZooKeeper's answer has an
error for each operation, of which only one is the reason.

A request that is longer than `jute.maxbuffer` of the servers would end the connection, each time
it is tried. So the length is checked before.

kazoo's own `TransactionRequest` makes no nodes without a value, so the pieces are made here of its
protocol's.
"""

from collections.abc import Sequence
from typing import Any, Final

from broker.cluster.metadata_store import (
    Check,
    Create,
    Delete,
    MetadataStoreError,
    NodeExistsError,
    NodeMissingError,
    NodeNotEmptyError,
    Put,
    TreeOperation,
    VersionMismatchError,
)
from broker.zookeeper.requests import is_loss

MOST_BYTES: Final = 0xFFFFF
"""The default `jute.maxbuffer` of a ZooKeeper server."""
_OVERHEAD: Final = 128
"""Bytes of one operation beside its path and value, with the access list of a new node."""

_EPHEMERAL: Final = 1
_SEQUENTIAL: Final = 2


class RequestTooLargeError(MetadataStoreError):
    """Changes that are too many, or too large, for one request."""


class Tree:
    """The cluster's part of ZooKeeper's tree: paths, and requests made of them."""

    __slots__ = ("chroot",)

    def __init__(self, chroot: str) -> None:
        self.chroot = chroot

    def full(self, path: str) -> str:
        """The path in ZooKeeper."""
        return (self.chroot + path.rstrip("/")) or "/"

    def own(self, full: str) -> str:
        """The path in the cluster's tree; the root is the empty text."""
        return full[len(self.chroot) :].rstrip("/")

    def multi(self, client: Any, operations: Sequence[TreeOperation]) -> Any:
        """Begin one request that makes all of the changes or none."""
        request = client.transaction()
        request.operations.extend(self._piece(operation) for operation in operations)
        return request.commit_async()

    def _piece(self, operation: TreeOperation) -> Any:
        from kazoo.protocol import serialization as pieces
        from kazoo.security import OPEN_ACL_UNSAFE

        match operation:
            case Create():
                flags = _EPHEMERAL * operation.ephemeral | _SEQUENTIAL * operation.sequential
                path = self.chroot + operation.path
                return pieces.Create(path, operation.value or None, OPEN_ACL_UNSAFE, flags)
            case Put():
                return pieces.SetData(self.full(operation.path), operation.value, operation.version)
            case Delete():
                return pieces.Delete(self.full(operation.path), operation.version)
            case Check():
                return pieces.CheckVersion(self.full(operation.path), operation.version)

    def size(self, operations: Sequence[TreeOperation]) -> int:
        """Bytes of one request with these changes, rather too many than too few."""
        return _OVERHEAD + sum(self.size_of(operation) for operation in operations)

    def size_of(self, operation: TreeOperation) -> int:
        """Bytes that a change takes in a request."""
        value = operation.value if isinstance(operation, Create | Put) else b""
        return _OVERHEAD + len(self.chroot) + 4 * len(operation.path) + len(value)

    def check_size(self, operations: Sequence[TreeOperation]) -> None:
        """Raise RequestTooLargeError if ZooKeeper would not take these changes at once."""
        size = self.size(operations)
        if size > MOST_BYTES:
            largest = max(operations, key=self.size_of)
            raise RequestTooLargeError(
                largest.path,
                f"{len(operations)} changes of about {size} bytes do not fit into one request to "
                f"ZooKeeper, which takes {MOST_BYTES} (jute.maxbuffer)",
            )


def first_refusal(results: Sequence[Any]) -> tuple[int, BaseException] | None:
    """Position and error of the operation for which all were refused; None if all were made.

    The others have errors too: those before it were rolled back, those after it were not tried.
    """
    refusal = None
    for at, result in enumerate(results):
        if isinstance(result, BaseException):
            if type(result).__name__ not in ("RolledBackError", "RuntimeInconsistency"):
                return at, result
            refusal = refusal or (at, result)
    return refusal


def refusal_of(path: str, version: int, error: BaseException) -> MetadataStoreError:
    """Our error for kazoo's."""
    if isinstance(error, MetadataStoreError):
        return error
    match type(error).__name__:
        case "NoNodeError":
            return NodeMissingError(path, "no such node")
        case "NodeExistsError":
            return NodeExistsError(path, "exists already")
        case "BadVersionError":
            return VersionMismatchError(path, f"version is not {version}")
        case "NotEmptyError":
            return NodeNotEmptyError(path, "has children")
        case "NoChildrenForEphemeralsError":
            return MetadataStoreError(path, "its parent ends with a session and has no children")
        case "NoAuthError":
            return MetadataStoreError(path, "ZooKeeper's access list of the node forbids it")
        case "InvalidACLError":
            return MetadataStoreError(path, "ZooKeeper does not take the node's access list")
    assert not is_loss(error)
    return MetadataStoreError(path, f"refused by ZooKeeper: {error or type(error).__name__}")


def expected_version(operation: TreeOperation) -> int:
    """The version that a change expects; -1 for any."""
    return -1 if isinstance(operation, Create) else operation.version


def refused(operation: TreeOperation, error: BaseException) -> MetadataStoreError:
    """Why an operation was refused."""
    return refusal_of(operation.path, expected_version(operation), error)
