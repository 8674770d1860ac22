"""What handlers ask: may the principal of this request's connection do this?

Handlers get a `Permissions` as `allowed`, or None if no authorizer is configured: then everything
is allowed, and they check nothing. The answer comes at once, from memory. A denial of a client's
request is logged; a handler that only filters (a listing, an alternative that another access makes
up for) asks quietly, as Kafka's does with `logIfDenied`.
"""

from typing import Protocol

from broker.request import RequestContext
from protocol.acls.vocabulary import Operation, ResourceType


class Permissions(Protocol):
    """The permissions of the principals of connections."""

    def __call__(
        self,
        ctx: RequestContext,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        count: int = 1,
    ) -> bool:
        """Whether the principal may; `count` says, for the audit log, how often the request names
        the resource."""
        ...

    def quietly(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """As `__call__`, and a denial is no news for the audit log."""
        ...

    def of_any(
        self, ctx: RequestContext, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether the principal may with at least one resource of the type (KIP-679)."""
        ...

    def operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        """The principal's operations on a resource as bits (KIP-430); nothing is logged."""
        ...
