"""What passes between the network and the handlers: a request's context and the kinds of reply.

A handler is a plain callable `handler(ctx, request)` and never blocks. It returns

* a message: the reply is ready, the connection's own task encodes and sends it;
* a `LargeReply`: a message with many elements, which is encoded in turns;
* `None`: there is no reply (Produce with acks=0);
* a `Pending`: the request is parked (long poll, rebalance). It occupies nothing but its connection,
  which goes on when the `Pending` is completed;
* a coroutine: work that may wait for the disk or other brokers, and is finished whatever becomes of
  its client. The request's bytes stay valid until then. The request channel gives it to one of the
  handler workers or, if producers and consumers do not use its API all the time, to a task aside;
* an `Aside`: work that takes long (many turns, a child process). The request is parked, and a task
  of its own does the work; it is cancelled when the client disconnects.

A coroutine or an `Aside` may return any of these again, and a `Pending` may be completed with any:
a worker whose request proves to take long hands it on as an `Aside`, and a parked request may go on
as one. `broker.network.asides` owns the tasks aside.

One connection has one request in work at a time, so replies keep the order of requests (S-NET-1).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import trio

from broker.fairness import Client
from protocol.errors import ErrorCode
from protocol.schema import Message


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


@dataclass(slots=True)
class LargeReply:
    """A reply with many elements to a request with few: it is encoded in turns.

    Its arrays may be `protocol.schema.lazy.Lazy`: their elements are made on the event loop when
    the encoder comes to them.
    """

    message: Any


@dataclass(slots=True)
class Aside:
    """A reply that takes long to make. It occupies no worker, and ends with its client.

    As with a `Pending`, the request's byte slices are no longer valid when `work` begins. The task
    may be cancelled wherever it waits, so `work` must shield what it has to finish. An exception
    that it raises is answered like a handler's.
    """

    work: Callable[[], Coroutine[Any, Any, Any]]
    """Called once at most; returns a reply of any kind."""


class Pending:
    """A reply that comes later. Completed on the event loop; only the first completion counts.

    The request's byte slices are views of the connection's buffer, which is reused as soon as the
    handler has returned a `Pending`: copy what is needed later.
    """

    __slots__ = ("_reply", "_wake", "abandoned", "done", "on_abandon")

    def __init__(self) -> None:
        self._wake: Callable[[], object] | None = None
        self._reply: Any = None
        self.done = False
        self.abandoned = False
        """The connection ended while the request was parked."""
        self.on_abandon: Callable[[], object] | None = None
        """Called if the connection ends before completion, to drop watchers early."""

    def complete(self, reply: Any) -> bool:
        """Hand over the reply. Returns False if it was complete already."""
        if self.done:
            return False
        self.done = True
        self._reply = reply
        if self._wake is not None:
            self._wake()
        return True

    def abandon(self) -> None:
        """Note that the connection has ended. Does nothing once the reply is complete."""
        if not self.done and not self.abandoned:
            self.abandoned = True
            if self.on_abandon is not None:
                self.on_abandon()

    def notify(self, wake: Callable[[], object]) -> None:
        """Call `wake` at completion, or at once if it is complete. There is one waiter only."""
        self._wake = wake
        if self.done:
            wake()

    @property
    def reply(self) -> Any:
        """The reply; None before it is `done`."""
        return self._reply

    async def wait_reply(self) -> Any:
        """Wait for the reply and return it. Cancellation abandons the request."""
        event = trio.Event()
        self.notify(event.set)
        try:
            await event.wait()
        except trio.Cancelled:
            self.abandon()
            raise
        return self._reply


T = TypeVar("T")
Work = Coroutine[Any, Any, T]
"""A coroutine that returns a reply."""
Reply: TypeAlias = "Message | LargeReply | Pending | Aside | Work[Reply] | None"
"""What a handler may return; the annotation of each handler is narrower."""


class Handler(Protocol):
    """One API's behaviour. A handler's own annotations name its request and its response."""

    def __call__(self, ctx: RequestContext, request: Any) -> Reply:
        """Check, delegate, answer. Never blocks."""
        ...

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Message | None:
        """A reply of this API with `code` for everything that the request names."""
        ...
