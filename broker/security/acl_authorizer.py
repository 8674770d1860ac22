"""Decides by access rules, remembers its decisions, and keeps the audit log.

After Kafka's `StandardAuthorizer` (and `AclAuthorizer`, whose name is accepted, too): super users
may do everything; all others may do what the rules allow (`protocol.acls.index`). A decision
depends on nothing but the client's principal and address, the operation and the resource, so it is
remembered until rules change: a request of daily work costs a look-up for each topic.
"""

import logging
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from broker.request import RequestContext
from broker.security.acl_store import AclStore
from broker.security.audit import AUDIT, ONLY_LOOKED_AT, audit_line
from protocol.acls.index import Decision, Ground
from protocol.acls.vocabulary import SUPPORTED, Operation, ResourceType

MOST_REMEMBERED: Final = 20_000
"""Decisions: five megabytes with names of usual lengths."""
LONGEST_REMEMBERED: Final = 255
"""Characters of a resource's name: those of groups may have 32,767, and clients choose them."""
ANY_NAME: Final = "hardcode"
"""The resource that Kafka checks first if any resource of a type will do."""

_SUPER_USER: Final = Decision(True, Ground.SUPER_USER)
_DEBUG: Final = logging.DEBUG
_INFO: Final = logging.INFO

_Key = tuple[str, str, Operation, ResourceType, str | None]
"""(principal, host, operation, type, name of the resource; None: any resource)"""


@dataclass(frozen=True, slots=True)
class AuthorizerStatistics:
    """The decisions of the authorizer since the start."""

    rules: int
    allowed: int
    denied: int


class AclAuthorizer:
    """Implements `Permissions`."""

    __slots__ = ("_allowed", "_denied", "_index", "_known", "_super_users")

    def __init__(self, rules: AclStore, super_users: Set[str]) -> None:
        """`super_users`: principals."""
        self._index = rules.index
        self._super_users = super_users
        self._known: dict[_Key, Decision] = {}
        self._allowed = 0
        self._denied = 0
        rules.follow(self._known.clear)

    def __call__(
        self,
        ctx: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        count: int = 1,
    ) -> bool:
        """See `Permissions`."""
        client = ctx.connection
        key = (client.principal, client.peer_host, operation, resource_type, name)
        decision = self._known.get(key) or self._decide(key)
        if decision.allowed:
            self._allowed += 1
            if AUDIT.isEnabledFor(_DEBUG):
                self._log(_DEBUG, ctx, key, count, decision)
            return True
        self._denied += 1
        if AUDIT.isEnabledFor(_INFO):
            self._log(_INFO, ctx, key, count, decision)
        return False

    def quietly(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """See `Permissions`."""
        return self._quietly(ctx, operation, resource_type, name, _DEBUG, 1)

    def _quietly(
        self,
        ctx: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        level: int,
        count: int,
    ) -> bool:
        client = ctx.connection
        key = (client.principal, client.peer_host, operation, resource_type, name)
        decision = self._known.get(key) or self._decide(key)
        if decision.allowed:
            self._allowed += 1
        else:
            self._denied += 1
            level = ONLY_LOOKED_AT
        if AUDIT.isEnabledFor(level):
            self._log(level, ctx, key, count, decision)
        return decision.allowed

    def of_any(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """See `Permissions`. Kafka first asks about a resource that there is not."""
        if self._quietly(ctx, operation, resource_type, ANY_NAME, _DEBUG, 0):
            return True
        client = ctx.connection
        key = (client.principal, client.peer_host, operation, resource_type, None)
        return (self._known.get(key) or self._decide(key)).allowed

    def operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        """See `Permissions`."""
        return sum(
            1 << operation
            for operation in SUPPORTED[resource_type]
            if self._quietly(ctx, operation, resource_type, name, ONLY_LOOKED_AT, 1)
        )

    def statistics(self) -> AuthorizerStatistics:
        """Counts for metrics."""
        return AuthorizerStatistics(len(self._index), self._allowed, self._denied)

    def _decide(self, key: _Key) -> Decision:
        principal, host, operation, resource_type, name = key
        if principal in self._super_users:
            decision = _SUPER_USER
        elif name is None:
            decision = self._index.decide_any(principal, host, operation, resource_type)
        else:
            decision = self._index.decide(principal, host, operation, resource_type, name)
        if name is None or len(name) <= LONGEST_REMEMBERED:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = decision
        return decision

    def _log(
        self, level: int, ctx: RequestContext, key: _Key, count: int, decision: Decision
    ) -> None:
        principal, host, operation, resource_type, name = key
        line = audit_line(
            principal, host, operation, resource_type, name or "", ctx.api_key, count, decision
        )
        AUDIT.log(level, "%s", line)
