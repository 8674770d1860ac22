"""A request that is not answered in one go.

The connection takes the first turn of a handler's work as soon as the frame is there; most requests
are answered then. The others are pending: the handler waits, or has not begun because the request
has too many elements for one turn, or its reply has. `broker.network.finishing` finishes them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from broker.network.activity import State
from broker.network.connection_state import ConnectionState
from broker.network.connection_work import ConnectionWork, is_parked, is_thread_call
from broker.network.large_messages import Room
from broker.network.routes import Route
from broker.request import RequestContext
from broker.world.turns import TURN_OVER
from storage.waits import PAUSE, Wait, Work


class Span(NamedTuple):
    """The place of a request's body in the connection's buffer."""

    start: int
    end: int


def named(route: Route, context: RequestContext) -> str:
    """Name a request for the log."""
    return (
        f"{route.metrics.name} version {context.api_version} from "
        f"{context.connection.connection_id} (client id {context.client_id})"
    )


class PendingRequest:
    """A pending request, and the `WaitObserver` of its work.

    Times are seconds, monotonic ones where a moment is meant.
    """

    __slots__ = (
        "connection_work",
        "context",
        "earlier_unsent",
        "local_s",
        "monotonic",
        "queue_s",
        "remote_s",
        "reply",
        "request",
        "rest",
        "room",
        "route",
        "since",
        "span",
        "state",
        "wait",
    )

    def __init__(self, route: Route, context: RequestContext, since: float) -> None:
        self.route = route
        self.context = context
        self.since = since
        """When its present phase (a turn, a wait) began; at first, when it came."""
        self.span: Span | None = None
        """The body, if it has too many elements for one turn; None once it is parsed."""
        self.request: Any = None
        self.rest: Work[Any] | None = None
        """The rest of the handler's work; None if the reply is there."""
        self.wait: Wait | None = None
        """The wait of the work; None if the work has not begun, or takes a step."""
        self.monotonic: Callable[[], float]
        self.connection_work: ConnectionWork | None = None
        """The work that awaits this one."""
        self.state: ConnectionState | None = None
        """The connection's state, while the connection waits for nothing but this request."""
        self.earlier_unsent = False
        """Whether earlier replies have not left yet."""
        self.room: Room | None = None
        """The room of a large request; None for any other."""
        self.reply: Any = None
        self.queue_s = 0.0
        """Seconds that it waited for a turn or a worker (RequestQueueTimeMs)."""
        self.local_s = 0.0
        """Seconds of the handler's turns, and of its calls by workers (LocalTimeMs)."""
        self.remote_s = 0.0
        """Seconds of all other waits (RemoteTimeMs)."""

    def name(self) -> str:
        """Name the request for the log."""
        return named(self.route, self.context)

    def note_times(self) -> None:
        """Count the times of the request, whose reply is there."""
        metrics = self.route.metrics
        metrics.note_queue(self.queue_s)
        metrics.note_local(self.local_s)
        if self.remote_s:
            metrics.note_remote(self.remote_s)

    def waits(self, wait: Wait) -> None:
        """See `WaitObserver`. Meanwhile others may use the memory that the request has released."""
        if self.wait is None:  # else it has waited since the connection's own turn
            now = self.monotonic()
            self.local_s += now - self.since
            self.since = now
        self.wait = wait
        state = self.state
        if state is not None and self.waits_for_others():
            released = self.context.released
            state.parked(released=released)
            if released and self.room is not None:
                self.room.shrink(0)

    def goes_on(self) -> float:
        """See `WaitObserver`."""
        since, wait, connection_work = self.since, self.wait, self.connection_work
        assert connection_work is not None
        self.since = now = self.monotonic()
        self.wait = None
        started = connection_work.started
        if started is not None:  # a worker made a call
            connection_work.started = None
            self.queue_s += started - since
            self.local_s += now - started
        elif wait is PAUSE or wait is TURN_OVER:
            self.queue_s += now - since
        else:
            self.remote_s += now - since
        if self.state is not None:
            self.state.activity.state = State.BUSY
        return now

    def waits_for_others(self) -> bool:
        """Whether the work waits for others on behalf of its client, and holds no worker."""
        wait, route = self.wait, self.route
        if is_parked(wait):
            return True
        if not route.ends_with_client or wait is None or wait is PAUSE or wait is TURN_OVER:
            return False
        return not (route.in_workers and is_thread_call(wait))

    async def forget(self) -> None:
        """Free request and reply, after encoding; in turns if a controller has sent the request."""
        request, self.request = self.request, None
        self.reply = None
        if self.route.most_of_brokers:  # handlers may have kept a part of other requests
            await _let_go(request)


async def _let_go(message: Any) -> None:
    """Free the elements of a message one by one: a million at once would take 100 ms."""
    for name in message.__slots__:
        elements = getattr(message, name)
        if isinstance(elements, list) and elements and hasattr(elements[0], "__slots__"):
            while elements:
                await _let_go(elements.pop())
                await PAUSE
