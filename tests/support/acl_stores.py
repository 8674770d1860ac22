"""Access rules over a metadata store, an authorizer that goes by them, and requests that ask it."""

from collections.abc import Collection
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

from broker.cluster.embedded_store import EmbeddedStore
from broker.request import RequestContext
from broker.security.acl_authorizer import AclAuthorizer
from broker.security.acl_store import AclStore
from protocol.acls.index import RuleIndex
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from tests.support.stores import open_store

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY


def allow(
    kind: ResourceType,
    operation: Operation,
    name: str,
    pattern: PatternType = LITERAL,
    *,
    principal: str = "User:ANONYMOUS",
    host: str = "*",
    permission: PermissionType = ALLOW,
) -> Rule:
    """A rule, which mostly allows."""
    return Rule(kind, name, pattern, principal, host, operation, permission)


@dataclass
class Rules:
    """The parts of a broker that know the rules."""

    store: EmbeddedStore
    acls: AclStore
    authorizer: AclAuthorizer


async def open_rules(
    *rules: Rule,
    super_users: Collection[str] = (),
    store: EmbeddedStore | None = None,
    allow_if_none: bool = False,
) -> Rules:
    """Rules in a store of their own, loaded as by a start."""
    store = store or await open_store()
    acls = AclStore(store, RuleIndex(allow_if_none=allow_if_none))
    await acls.load()
    await acls.create(rules)
    return Rules(store, acls, AclAuthorizer(acls, frozenset(super_users)))


Asked = tuple[ResourceType, Operation, str]


@dataclass
class NotedPermissions:
    """Allows everything but `denied`, and notes the questions."""

    denied: Collection[Any] = ()
    """Types of resources, pairs with an operation, or triples with a name, too."""
    asked: list[Asked] = dataclass_field(default_factory=list)
    quiet: list[Asked] = dataclass_field(default_factory=list)
    counts: list[int] = dataclass_field(default_factory=list)
    clients: set[tuple[str, str]] = dataclass_field(default_factory=set)

    def __call__(
        self,
        ctx: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        count: int = 1,
    ) -> bool:
        self.clients.add((ctx.connection.principal, ctx.connection.peer_host))
        self.asked.append((resource_type, operation, name))
        self.counts.append(count)
        return self._may(resource_type, operation, name)

    def quietly(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        self.quiet.append((resource_type, operation, name))
        return self._may(resource_type, operation, name)

    def of_any(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType
    ) -> bool:
        self.quiet.append((resource_type, operation, ""))
        return self._may(resource_type, operation, "")

    def operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        return sum(
            1 << one
            for one in Operation
            if one > Operation.ALL and self._may(resource_type, one, name)
        )

    def _may(self, kind: ResourceType, operation: Operation, name: str) -> bool:
        return not {kind, (kind, operation), (kind, operation, name)} & set(self.denied)
