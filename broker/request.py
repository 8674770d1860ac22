"""The interface between the network and the handlers: a request's context, the form of a handler.

Calling a handler gives its reply, None if there is none (Produce with acks=0), or work that may
wait (`storage.waits`), whose result is the reply. The connection takes the first step of the work,
which mostly is the whole, and awaits the rest; `broker.network.connection_work` says which work
ends with the client. A handler sets facts about the request in the context: `large`, `released`,
`close_connection`.

One connection has one request in work at a time, so replies keep the order of requests (S-NET-1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from broker.fairness import Client
from protocol.errors import ErrorCode
from protocol.schema import Message
from storage.waits import Work


class Authentication(Protocol):
    """How a connection of a SASL listener authenticates (`broker.security.authentication`)."""

    async def ask_versions(self, ctx: "RequestContext") -> bool:
        """Whether ApiVersions is answered now; if so, `tell_versions` follows."""
        ...

    def tell_versions(self) -> None:
        """ApiVersions is answered, without an error."""
        ...

    async def shake_hands(self, ctx: "RequestContext", mechanism: str) -> Any:
        """SaslHandshake: the client chooses a mechanism. Returns an `Answer`."""
        ...

    async def authenticate(self, ctx: "RequestContext", message: bytes) -> Any:
        """SaslAuthenticate: the mechanism's next message. Returns an `Answer`."""
        ...

    @property
    def offered(self) -> Sequence[str]:
        """The names of the mechanisms."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionInfo:
    """The facts that a handler may know of the connection that a request came from."""

    connection_id: str
    listener_name: str
    local_host: str
    """The address that the client connected to; it is advertised to the client if
    advertised.listeners is not set."""
    local_port: int
    peer_host: str
    peer_port: int
    principal: str = "User:ANONYMOUS"
    security_protocol: str = "PLAINTEXT"
    """The protocol of the listener."""
    authentication: Authentication | None = None
    """None if the listener does not authenticate by SASL."""
    is_stranger: bool = False
    """Whether the client has yet to prove who it is."""
    by_token: bool = False
    """Whether the principal was authenticated by a delegation token."""
    number: int = 0
    """Rises with every connection."""

    @property
    def client(self) -> Client:
        """The client whose share of the common resources the connection's requests take."""
        return Client(self.peer_host, self.number)


class RequestContext:
    """A request's header, and what the handler needs to know of its connection."""

    __slots__ = (
        "api_key",
        "api_version",
        "client_id",
        "close_connection",
        "connection",
        "correlation_id",
        "debt",
        "large",
        "received",
        "released",
        "size",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: ConnectionInfo,
        received: float,
        size: int = 0,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.received = received
        """Monotonic clock, in seconds, when the frame was complete."""
        self.size = size
        """Bytes of the frame, its length left out."""
        self.close_connection = False
        """A handler sets it to close the connection after this request (a failed Produce,
        acks=0)."""
        self.large = False
        """Whether the request has more elements than may be handled in one go (`SMALL_ELEMENTS`),
        or its handler says that the reply has: then the reply is encoded in turns."""
        self.released = False
        """A handler sets it when it needs the request's byte slices no more. They are views of the
        connection's buffer, which is given back while the request waits: copy what is needed
        later."""
        self.debt: Any = None
        """The handler's charge to the client's quotas (`broker.quotas.charging.Debt`)."""


ReplyOrWork: TypeAlias = Message | Work[Any] | None
"""A reply, or the work that gives it."""


def is_reply(given: ReplyOrWork) -> bool:
    """Whether a handler has given its reply, and not work."""
    return given is None or isinstance(given, Message)


async def reply_of(given: Any) -> Any:
    """The reply, when the work that gives it is done."""
    return given if is_reply(given) else await given


class Handler(Protocol):
    """One API's behaviour. A handler's own annotations name its request and its response.

    A reply belongs to its connection, which writes the throttle time of the client into it, so a
    handler makes a new one for each request. The elements of replies may be shared.
    """

    def __call__(self, ctx: RequestContext, request: Any) -> ReplyOrWork:
        """Check, delegate, answer. Raises KafkaError, which becomes an `error_response`."""
        ...

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Message | None:
        """A reply of this API with `code` for everything that the request names."""
        ...
