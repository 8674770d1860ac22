"""The grants of clients, for the comparison of access with Apache Kafka.

Clients of a PLAINTEXT listener are all `User:ANONYMOUS`, so rules tell them apart by address: each
set of grants has an address of its own, and all rules are made at once. Names of things that a
client has grants for begin with `may-`, those of all others with `not-`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from broker.registry import APIS
from broker.security.access import Question
from protocol.acls.rules import CLUSTER_NAME, WILDCARD, WILDCARD_PRINCIPAL, Rule
from protocol.acls.vocabulary import (
    SUPPORTED,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)
from protocol.api_keys import ApiKey
from protocol.messages.create_acls import AclCreation, CreateAclsRequest

ADMIN: Final = "127.0.0.1"
MAY: Final = "may-"
NOT: Final = "not-"
CLIENT: Final = "User:ANONYMOUS"

SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Everybody is allowed everything until the first rules come, which Kafka's own brokers need."""

Grant = Question


@dataclass(frozen=True, slots=True)
class GrantSet:
    """The grants of one client."""

    name: str
    granted: tuple[Grant, ...] = ()
    """Allowed on things whose name begins with `may-`, or on the cluster."""
    denied: tuple[Grant, ...] = ()
    """Denied on things whose name begins with `not-`, or on the cluster; all else is allowed."""
    apis: frozenset[ApiKey] | None = None
    """The APIs that are tried with these grants; None: all."""

    def rules(self, host: str) -> Iterator[Rule]:
        """Yield the rules that give these grants to clients from `host`."""
        for kind, operation in self.granted:
            yield _rule(kind, MAY, host, operation, PermissionType.ALLOW)
        if self.denied:
            for kind in SUPPORTED:
                name = CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD
                allow = Operation.ALL, PermissionType.ALLOW
                yield Rule(kind, name, PatternType.LITERAL, WILDCARD_PRINCIPAL, host, *allow)
        for kind, operation in self.denied:
            yield _rule(kind, NOT, host, operation, PermissionType.DENY)


def _rule(
    kind: ResourceType, prefix: str, host: str, operation: Operation, permission: PermissionType
) -> Rule:
    if kind is ResourceType.CLUSTER:
        name, pattern = CLUSTER_NAME, PatternType.LITERAL
    else:
        name, pattern = prefix, PatternType.PREFIXED
    return Rule(kind, name, pattern, CLIENT, host, operation, permission)


KINDS: Final = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def grant_sets() -> list[GrantSet]:
    """No grant; each operation alone, allowed and denied; each API's needs, whole and but one."""
    single = [Grant(kind, op) for kind in KINDS for op in (*SUPPORTED[kind], Operation.ALL)]
    sets = [GrantSet("nothing")]
    sets += [GrantSet(f"only {one}", (one,)) for one in single]
    sets += [GrantSet(f"all but {one}", (), (one,)) for one in single]
    for key, api in APIS.items():
        needed = tuple(
            dict.fromkeys(
                [
                    *(Grant(one.resource, one.operation) for one in api.accesses),
                    *(one.unless for one in api.accesses if one.unless is not None),
                    *api.asks,
                ]
            )
        )
        if len(needed) > 1:
            apis = frozenset((key,))
            sets.append(GrantSet(f"what {key.name} needs", needed, (), apis))
            for left_out in needed:
                others = tuple(one for one in needed if one != left_out)
                name = f"what {key.name} needs but {left_out}"
                sets.append(GrantSet(name, others, (), apis))
    return sets


def host_of(number: int) -> str:
    """Return the address of the client with one set of grants."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


def all_rules(sets: list[GrantSet]) -> list[Rule]:
    """Return all rules: the administrator's first, of these the one about the cluster first."""
    allow = Operation.ALL, PermissionType.ALLOW
    rules = [
        Rule(
            kind,
            CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD,
            PatternType.LITERAL,
            WILDCARD_PRINCIPAL,
            ADMIN,
            *allow,
        )
        for kind in (ResourceType.CLUSTER, *SUPPORTED)
    ]
    for number, one in enumerate(sets):
        rules += one.rules(host_of(number))
    return list(dict.fromkeys(rules))


def creation(rules: list[Rule]) -> CreateAclsRequest:
    """Return the request that makes rules."""
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=rule.resource_type,
                resource_name=rule.resource_name,
                resource_pattern_type=rule.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in rules
        ]
    )
