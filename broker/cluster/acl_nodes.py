"""Nodes of the metadata tree that hold access rules: what Kafka writes to ZooKeeper, as JSON.

    /kafka-acl/<type>/<name>                      rules with this literal name, or `*`
    /kafka-acl-extended/prefixed/<type>/<name>    rules with this prefix

    {"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read",
                          "host":"*"},…]}

A name with a `/` in it is written with `%2F` for that and `%25` for a `%`, so that a name is one
node; Kafka makes a path of it and does not find it again (decision 98). Any other name is written
as it is, as Kafka does, unless it would read as one of those. The nodes under `/kafka-acl-changes`,
by which Kafka's brokers tell each other of changes, are the store's business in a cluster
(`broker.zookeeper.change_logs`); stand-alone a watch of the tree tells.

A node that cannot be read is an error, and the broker does not start: it may hold what denies.
Sources: `kafka.zk.ZkAclStore`, `AclEntry` (3.9).
"""

import json
from collections.abc import Iterable
from typing import Final

from broker.cluster.tree_values import BadValueError, encode, reading
from protocol.acls.rules import Pattern, Rule
from protocol.acls.vocabulary import (
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
    from_name,
    pascal_name,
)

LITERAL_RULES: Final = "/kafka-acl"
PREFIXED_RULES: Final = "/kafka-acl-extended/prefixed"
ROOTS: Final = {PatternType.LITERAL: LITERAL_RULES, PatternType.PREFIXED: PREFIXED_RULES}
_VERSION: Final = 1
_ESCAPED: Final = ("/", "%2F", "%25")
"""A name that contains one of these is escaped in its path."""


def node_path(pattern: Pattern) -> str:
    """The node with the rules of a pattern."""
    name = pattern.name
    if any(mark in name for mark in _ESCAPED):
        name = name.replace("%", "%25").replace("/", "%2F")
    return f"{ROOTS[pattern.pattern_type]}/{pascal_name(pattern.resource_type)}/{name}"


def pattern_of(path: str) -> Pattern | None:
    """The pattern whose rules a node has; None for a node above those. Raises BadValueError."""
    for pattern_type, root in ROOTS.items():
        if path.startswith(f"{root}/"):
            kind, _, name = path[len(root) + 1 :].partition("/")
            resource_type = from_name(ResourceType, kind)
            if resource_type is None or resource_type <= ResourceType.ANY:
                raise BadValueError(path, f"there is no type of resources {kind}")
            if not name:
                return None
            plain = name.replace("%2F", "/").replace("%25", "%")
            return Pattern(resource_type, plain, pattern_type)
    return None


def encode_rules(rules: Iterable[Rule]) -> bytes:
    """The value of the node with these rules, which have one pattern."""
    return encode(
        {
            "version": _VERSION,
            "acls": [
                {
                    "principal": rule.principal,
                    "permissionType": pascal_name(rule.permission_type),
                    "operation": pascal_name(rule.operation),
                    "host": rule.host,
                }
                for rule in sorted(rules)
            ],
        }
    )


def decode_rules(pattern: Pattern, value: bytes) -> set[Rule]:
    """The rules of a node; none in an empty one. Raises BadValueError."""
    if not value:
        return set()
    with reading(node_path(pattern)):
        content = json.loads(value)
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']} of rules is not known")
        return {_rule(pattern, entry) for entry in content["acls"]}


def _rule(pattern: Pattern, entry: dict[str, str]) -> Rule:
    operation = from_name(Operation, entry["operation"])
    permission = from_name(PermissionType, entry["permissionType"])
    principal, host = entry["principal"], entry["host"]
    if operation is None or operation <= Operation.ANY:
        raise ValueError(f"there is no operation {entry['operation']}")
    if permission is None or permission <= PermissionType.ANY:
        raise ValueError(f"there is no permission {entry['permissionType']}")
    if not isinstance(principal, str) or not isinstance(host, str) or ":" not in principal:
        raise ValueError(f"{principal} is no principal, or {host} no host")
    return Rule(*pattern, principal, host, operation, permission)
