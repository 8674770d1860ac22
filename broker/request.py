"""What passes between the network and the handlers: a request's context and the kinds of reply.

A handler is a plain callable `handler(ctx, request)` and never blocks. It returns

* a message: the reply is ready, the connection's own task encodes and sends it;
* a `LargeReply`: a message with many elements, which is encoded in turns;
* `None`: there is no reply (Produce with acks=0);
* a `Pending`: the request is parked (long poll, rebalance). Nothing is held but the connection's
  place in line; whoever completes the `Pending` wakes it;
* a coroutine: work that may wait for the disk or other brokers, and is finished whatever becomes of
  its client. It has the request's bytes until then. The request channel gives it to one of the
  handler workers, or, where its API is no producer's or consumer's daily business, to a task aside;
* an `Aside`: work that takes long (many turns, a child process). A task of its own does it, which
  ends with the client; meanwhile the request is parked.

What a coroutine or an `Aside` returns, and what a `Pending` is completed with, may be any of these
again: a worker that finds that its request takes long hands it on as an `Aside`, a parked request
goes on as one. Tasks aside are `broker.network.asides`.

One connection has one request in work at a time, so replies keep the order of requests (S-NET-1).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import trio

from protocol.errors import ErrorCode
from protocol.schema import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionInfo:
    """What a handler may know of the connection a request came in on."""

    connection_id: str
    listener_name: str
    local_host: str
    """The address the client connected to: told to it when advertised.listeners is not set."""
    local_port: int
    peer_host: str
    peer_port: int
    principal: str = "User:ANONYMOUS"


@dataclass(slots=True)
class RequestContext:
    """One request's envelope."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    connection: ConnectionInfo
    received: float
    """Monotonic seconds at which the frame was complete."""
    close_connection: bool = False
    """Set by a handler when the connection must end after this request (acks=0 that failed)."""
    large: bool = False
    """The request has more elements than are gone through in one go (`SMALL_ELEMENTS`): its handler
    does that in turns. Its reply is encoded in turns, too."""


@dataclass(slots=True)
class LargeReply:
    """A reply with many elements to a request with few: it is encoded in turns.

    Its arrays may be `protocol.schema.lazy.Lazy`: their elements are made on the event loop when
    the encoder comes to them.
    """

    message: Any


@dataclass(slots=True)
class Aside:
    """A reply that takes long to make. Holds no worker; ends with its client.

    As with a `Pending`, byte slices of the request are not there any more when `work` begins. The
    task is cancelled where it waits: what it must finish it shields. What it raises is answered, as
    what a handler raises.
    """

    work: Callable[[], Coroutine[Any, Any, Any]]
    """Begun once at most. It returns a reply of any kind."""


class Pending:
    """A reply that comes later. Completed once, from the event loop; the first completion wins.

    The request's byte slices are views of the connection's buffer, which is used for other things
    as soon as the handler has returned a `Pending`: what is needed later must be copied.
    """

    __slots__ = ("_reply", "_wake", "abandoned", "done", "on_abandon")

    def __init__(self) -> None:
        self._wake: Callable[[], object] | None = None
        self._reply: Any = None
        self.done = False
        self.abandoned = False
        """The connection ended while the request was parked."""
        self.on_abandon: Callable[[], object] | None = None
        """Called without arguments when the connection ends first, to drop watchers early."""

    def complete(self, reply: Any) -> bool:
        """Hand over the reply; False when it was complete already."""
        if self.done:
            return False
        self.done = True
        self._reply = reply
        if self._wake is not None:
            self._wake()
        return True

    def abandon(self) -> None:
        """Nobody waits for the reply any more. Does nothing once it is complete."""
        if not self.done and not self.abandoned:
            self.abandoned = True
            if self.on_abandon is not None:
                self.on_abandon()

    def notify(self, wake: Callable[[], object]) -> None:
        """Call `wake` at completion, at once if it is complete. One waiter only."""
        self._wake = wake
        if self.done:
            wake()

    @property
    def reply(self) -> Any:
        """The reply; None before it is `done`."""
        return self._reply

    async def wait_reply(self) -> Any:
        """The reply, when there is one. Cancelled: the request counts as abandoned."""
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
"""A coroutine that ends with a reply."""
Reply: TypeAlias = "Message | LargeReply | Pending | Aside | Work[Reply] | None"
"""What a handler may return; its annotation says which of these."""


class Handler(Protocol):
    """One API's behaviour. A handler's own annotations name its request and its response."""

    def __call__(self, ctx: RequestContext, request: Any) -> Reply:
        """Check, delegate, answer. Never blocks."""
        ...

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Message | None:
        """A reply of this API that says `code` for everything that was asked."""
        ...
