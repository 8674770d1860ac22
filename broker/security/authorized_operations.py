"""The bit fields of KIP-430: what a client may do; without an authorizer, everything.

Bit n stands for the ACL operation with code n; the sets are those of Kafka's
`AclEntry.supportedOperations`.
"""

from typing import Final

from broker.security.access import Operation

NOT_ASKED: Final = -(1 << 31)
"""The bit field of a response whose request did not ask for operations."""


def _bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


TOPIC: Final = _bits(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
GROUP: Final = _bits(Operation.READ, Operation.DELETE, Operation.DESCRIBE)
CLUSTER: Final = _bits(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
