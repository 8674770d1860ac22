"""The one place that asks the authorizer: before the handler of an API is called.

* A request passes if every `Access` of its API's row is allowed for every resource that the request
  names; they are checked in the order of the row. Otherwise the request is refused whole, with the
  code of the denied resource's type, in the API's own error response: a request that names one
  forbidden topic among ten touches none of them (decision 77).
* Others may run while the resources of a large request (`ctx.large`) are checked.
* With `AllowAll` there is no gate: the route holds the handler itself.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from broker.request import Handler, RequestContext
from broker.security.access import DENIED, Access
from broker.security.authorizer import AllowAll, Authorizer
from protocol.errors import ErrorCode, KafkaError
from storage.waits import PAUSE

_AnyHandler = TypeVar("_AnyHandler", bound=Handler)


class Gate:
    """Asks one authorizer, on behalf of all APIs."""

    def __init__(self, authorizer: Authorizer, topic_name: Callable[[bytes], str | None]) -> None:
        """`topic_name` returns the name of the topic with an id, None if there is no such topic."""
        self._authorizer = authorizer
        self._topic_name = topic_name

    def guard(self, handler: _AnyHandler, accesses: Iterable[Access]) -> "_AnyHandler | Guarded":
        """The handler behind this gate; the handler itself if there is nothing to ask."""
        needed = tuple(accesses)
        if not needed or isinstance(self._authorizer, AllowAll):
            return handler
        return Guarded(handler, needed, self)

    def questions(
        self, ctx: RequestContext, request: Any, accesses: Iterable[Access]
    ) -> Iterator[bool]:
        """Ask for one resource after the other, and yield True for each that is allowed.

        Raises KafkaError, with the code of the resource's type, for the first that is denied.
        """
        for access in accesses:
            if access.unless is not None and all(self._answers(ctx, request, access.unless)):
                continue
            for allowed in self._answers(ctx, request, access):
                if not allowed:
                    raise KafkaError(DENIED[access.resource])
                yield True

    def _answers(self, ctx: RequestContext, request: Any, access: Access) -> Iterator[bool]:
        client = ctx.connection
        for named in access.names(ctx, request):
            name = self._topic_name(named) if isinstance(named, bytes) else named
            if name is not None:  # None: no name, or an unknown topic id, which the handler refuses
                yield self._authorizer.authorize(
                    client.principal, client.peer_host, access.operation, access.resource, name
                )


class Guarded:
    """A handler that is called only when the gate lets the request through."""

    def __init__(self, handler: Handler, accesses: tuple[Access, ...], gate: Gate) -> None:
        self.handler = handler
        self.accesses = accesses
        self._gate = gate

    async def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The handler's reply. Raises KafkaError if access is denied."""
        for _ in self._gate.questions(ctx, request, self.accesses):
            if ctx.large:
                await PAUSE
        return await self.handler(ctx, request)

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """The handler's error response."""
        return self.handler.error_response(ctx, request, code)
