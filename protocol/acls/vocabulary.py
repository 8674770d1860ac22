"""The enums of Kafka's ACLs: numbers as they travel, and names as ZooKeeper and logs have them.

A code that no member has reads as UNKNOWN, as in Kafka's `fromCode`.
Sources: `org.apache.kafka.common.acl`, `….resource`, `SecurityUtils`.
"""

from enum import IntEnum
from typing import Final, TypeVar


class ResourceType(IntEnum):
    """The kind of thing that a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name in a rule is compared with a resource's."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """Filters only: every pattern that a resource of the filter's name matches."""
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """An operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """Whether a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


Word = ResourceType | PatternType | Operation | PermissionType
_WordT = TypeVar("_WordT", ResourceType, PatternType, Operation, PermissionType)

SUPPORTED: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that a resource of each type has (Kafka's `AclEntry.supportedOperations`)."""


def from_code(kind: type[_WordT], code: int) -> _WordT:
    """Return the member with this code, UNKNOWN if there is none."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def pascal_name(word: Word) -> str:
    """The name in ZooKeeper and in the audit log: TRANSACTIONAL_ID is `TransactionalId`."""
    return "".join(part.capitalize() for part in word.name.split("_"))


def from_name(kind: type[_WordT], name: str) -> _WordT | None:
    """Return the member of this name, `DescribeConfigs` or `DESCRIBE_CONFIGS` in any case.

    None if there is none.
    """
    plain = name.replace("_", "").lower()
    return next((one for one in kind if one.name.replace("_", "").lower() == plain), None)
