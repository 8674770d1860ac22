"""The bit fields of KIP-430: the operations that a client may do with a resource.

Bit n stands for the ACL operation with code n; the sets are those of Kafka's
`AclEntry.supportedOperations`.
"""

from collections.abc import Iterable
from typing import Final

from broker.request import RequestContext
from broker.security.permissions import Permissions
from protocol.acls.rules import CLUSTER_NAME
from protocol.acls.vocabulary import SUPPORTED, Operation, ResourceType

NOT_ASKED: Final = -(1 << 31)
"""The bit field of a response whose request did not ask for operations."""
NONE: Final = 0
"""For a client that may not even describe the resource."""


def bit_field(operations: Iterable[Operation]) -> int:
    """The operations as bits."""
    return sum(1 << operation for operation in operations)


EVERYTHING: Final = {kind: bit_field(operations) for kind, operations in SUPPORTED.items()}
"""The bit field of all operations on a resource of each type."""


def cluster_operations(allowed: Permissions | None, ctx: RequestContext) -> int:
    """The client's operations on the cluster, as bits; NONE if it may not even describe it."""
    if allowed is not None and not allowed(
        ctx, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        return NONE
    return authorized_operations(allowed, ctx, ResourceType.CLUSTER, CLUSTER_NAME)


def authorized_operations(
    allowed: Permissions | None, ctx: RequestContext, resource_type: ResourceType, name: str
) -> int:
    """The client's operations on a resource, as bits; all of them without an authorizer."""
    if allowed is None:
        return EVERYTHING[resource_type]
    return allowed.operations(ctx, resource_type, name)
