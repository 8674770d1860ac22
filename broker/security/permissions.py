"""What handlers ask: may the principal of this request's connection do this?

Handlers are given a `Permissions` as `allowed`, or None where no authorizer is configured: then
everything is allowed, and they ask nobody. The answer is given at once, from memory. Denials of
what a client asked for are logged; a handler that only filters (a listing, an alternative that
another access makes up for) asks quietly, as Kafka's does with `logIfDenied`.
"""

from typing import Protocol

from broker.request import RequestContext
from protocol.acls.vocabulary import Operation, ResourceType


class Permissions(Protocol):
    """What the principals of connections may do."""

    def __call__(
        self,
        ctx: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        count: int = 1,
    ) -> bool:
        """Whether it may; `count` says, for the audit log, how often the request names it."""
        ...

    def quietly(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """As `__call__`, and a denial is no news for the audit log."""
        ...

    def of_any(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether it may with at least one resource of the type (KIP-679)."""
        ...

    def operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        """The bit field of what it may do with a resource (KIP-430); nothing is logged."""
        ...
