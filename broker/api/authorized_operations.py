"""The bit fields of KIP-430: what a client may do; without an authorizer, everything.

Bit n stands for the ACL operation with code n; the sets are those of Kafka's
`AclEntry.supportedOperations`.
"""

from typing import Final

NOT_ASKED: Final = -(1 << 31)
"""The bit field of a response whose request did not ask for operations."""

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC: Final = _bits(
    _READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
GROUP: Final = _bits(_READ, _DELETE, _DESCRIBE)
CLUSTER: Final = _bits(
    _CREATE,
    _ALTER,
    _DESCRIBE,
    _CLUSTER_ACTION,
    _DESCRIBE_CONFIGS,
    _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
)
