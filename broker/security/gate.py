"""The gate checks, before the handler of an API is called, the accesses that a request needs whole.

A request passes if every `Access` of its API is allowed; they are checked in their order. Otherwise
the request is refused with the code of the denied resource's type, in the API's own error response.
The handler itself checks parts of a request (`security.permissions`, decision 97). Without an
authorizer there is no gate: a route holds the handler itself.
"""

from typing import Any

from broker.request import Handler, ReplyOrWork, RequestContext
from broker.security.access import CLUSTER_NAME, DENIED, Access
from broker.security.permissions import Permissions
from protocol.errors import KafkaError


class Guarded:
    """A handler that is called only when the request may be made."""

    def __init__(
        self, handler: Handler, accesses: tuple[Access, ...], allowed: Permissions
    ) -> None:
        self.handler = handler
        self.error_response = handler.error_response
        self.accesses = accesses
        self._allowed = allowed

    def __call__(self, ctx: RequestContext, request: Any) -> ReplyOrWork:
        """The handler's answer. Raises KafkaError if access is denied."""
        for access in self.accesses:
            self._check(ctx, request, access)
        return self.handler(ctx, request)

    def passes(self, ctx: RequestContext) -> bool:
        """Whether the client may do all this with the cluster, whatever is in its request."""
        return all(
            self._allowed.quietly(ctx, access.operation, access.resource, CLUSTER_NAME)
            for access in self.accesses
        )

    def _check(self, ctx: RequestContext, request: Any, access: Access) -> None:
        allowed, instead = self._allowed, access.unless
        if instead is not None and allowed.quietly(
            ctx, instead.operation, instead.resource, CLUSTER_NAME
        ):
            return
        for name in access.names(ctx, request):
            if not allowed(ctx, access.operation, access.resource, name):
                raise KafkaError(DENIED[access.resource])
