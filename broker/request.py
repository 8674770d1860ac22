"""What passes between the network and the handlers: a request's context, and the form of a handler.

A handler is work that may wait (`storage.waits`): `await handler(ctx, request)` is its reply, None
if there is none (Produce with acks=0). Its connection takes the first step, which mostly is the
whole; `broker.network.continuation` says who takes the others, and what ends with the client. What
the handler tells of itself it sets in the context: `large`, `released`, `close_connection`.

One connection has one request in work at a time, so replies keep the order of requests (S-NET-1).
"""

from dataclasses import dataclass
from typing import Any, Protocol

from broker.fairness import Client
from protocol.errors import ErrorCode
from protocol.schema import Message
from storage.waits import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionInfo:
    """What a handler may know of the connection that a request came from."""

    connection_id: str
    listener_name: str
    local_host: str
    """The address that the client connected to; it is advertised to the client if
    advertised.listeners is not set."""
    local_port: int
    peer_host: str
    peer_port: int
    principal: str = "User:ANONYMOUS"
    number: int = 0
    """Rises with every connection."""

    @property
    def client(self) -> Client:
        """Whose share of what all use the connection's requests take."""
        return Client(self.peer_host, self.number)


@dataclass(slots=True)
class RequestContext:
    """A request's header, and what the handler needs to know of its connection."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionInfo
    received: float
    """Monotonic clock, in seconds, when the frame was complete."""
    close_connection: bool = False
    """A handler sets it to close the connection after this request (a failed Produce, acks=0)."""
    large: bool = False
    """Whether the request has more elements than may be handled in one go (`SMALL_ELEMENTS`), or
    its handler says that the reply has: then the reply is encoded in turns."""
    released: bool = False
    """A handler sets it when it needs the request's byte slices no more. They are views of the
    connection's buffer, which is given back while the request waits: copy what is needed later."""


class Handler(Protocol):
    """One API's behaviour. A handler's own annotations name its request and its response."""

    def __call__(self, ctx: RequestContext, request: Any) -> Work[Any]:
        """Check, delegate, answer. Raises KafkaError, which becomes an `error_response`."""
        ...

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Message | None:
        """A reply of this API with `code` for everything that the request names."""
        ...
