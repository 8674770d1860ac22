"""A request that its handler's first step did not finish: what is left of its work, its outcome.

The connection takes the first step in its own turn; most requests are done then. What the
work waits for decides who goes on with it:

* `Signal.parked`: nobody. The connection waits for the signal, unless its client resets it, and
  takes the next step in a turn of its own (`broker.network.connection_loop`).
* A call in a thread, of an API that producers and consumers use all the time (`Route.in_workers`):
  a handler worker, which makes the call and goes on until the work asks for anything else. A worker
  never waits: the holder of what it waited for may need a worker too, and nobody would go on.
* Anything else: a task aside (`broker.network.asides`), to its end or until it is parked.

An API that changes something is finished whatever becomes of its client. Work of the others
(`Route.ends_with_client`) ends at its next wait aside when the client resets the connection. A
client that only sends no more may wait for its replies, and ends nothing.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import trio

from broker.fairness import CLIENT
from broker.network.routes import Route
from broker.request import RequestContext, is_reply
from broker.world.driver import Driver
from protocol.errors import KafkaError
from storage.clock import Clock
from storage.waits import PAUSE, Call, Place, Until, Wait, Work

logger = logging.getLogger(__name__)


class Span(NamedTuple):
    """Where the body of a request is, in the connection's buffer."""

    start: int
    end: int


def is_parked(wait: Wait | None) -> bool:
    """Whether work waits on behalf of its client."""
    return isinstance(wait, Until) and wait.parked


def is_asleep(wait: Wait | None) -> bool:
    """Whether work is parked and cannot go on yet."""
    return isinstance(wait, Until) and wait.parked and not wait.signal.fired


def is_long(wait: Wait) -> bool:
    """Whether work must not hold a handler worker any longer: it takes long, or waits."""
    return not isinstance(wait, Call) or wait.place is not Place.THREAD


def named(route: Route, context: RequestContext) -> str:
    """Name a request for the log."""
    return (
        f"{route.metrics.name} version {context.api_version} from "
        f"{context.connection.connection_id} (client id {context.client_id})"
    )


class Unanswered:
    """One such request. Times are seconds, monotonic ones where a moment is meant."""

    __slots__ = (
        "_ends",
        "_left",
        "_scope",
        "context",
        "error",
        "local_s",
        "queue_s",
        "remote_s",
        "reply",
        "request",
        "route",
        "since",
        "span",
        "started",
        "wait",
        "work",
    )

    def __init__(self, route: Route, context: RequestContext, since: float) -> None:
        self.route = route
        self.context = context
        self.since = since
        """When its last step ended; first, when the request came."""
        self.span: Span | None = None
        """Its body, which has too many elements to be parsed in one go; None once it is parsed."""
        self.request: Any = None
        self.work: Work[Any] | None = None
        """What is left of the handler's work; None if nothing ever was."""
        self.wait: Wait | None = None
        """What the work waits for; None once it is done."""
        self.reply: Any = None
        self.error: Exception | None = None
        """What the handler raised, for the connection to answer (decision 7)."""
        self.queue_s = 0.0
        """Until the handler's turn came, each time."""
        self.local_s = 0.0
        """That the handler has worked."""
        self.remote_s = 0.0
        """That it waited for others."""
        self.started = 0.0
        """When somebody last went on with it; 0 before."""
        self._left = self._ends = False
        self._scope: trio.CancelScope | None = None

    def name(self) -> str:
        """Name it for the log."""
        return named(self.route, self.context)

    def begin(self) -> None:
        """Call the handler, and take the first step of its work, in the caller's own turn."""
        try:
            given = self.route.handler(self.context, self.request)
        except Exception as error:  # noqa: BLE001 - answered by the connection (decision 7)
            self.error = error
            return
        if is_reply(given):
            self.reply = given
        else:
            self.work = given
            self.step()

    def step(self) -> None:
        """Take the next step in the caller's own turn."""
        assert self.work is not None
        try:
            self.wait = self.work.send(None)
        except StopIteration as end:
            self.wait, self.reply = None, end.value
        except Exception as error:  # noqa: BLE001 - answered by the connection (decision 7)
            self.wait, self.error = None, error

    async def go_on(
        self,
        driver: Driver,
        clock: Clock,
        gives_back: Callable[[Wait], bool],
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Go on with it in a task of the broker, after `first`, until it is done or given back."""
        assert self.work is not None
        assert self.wait is not None
        CLIENT.set(self.context.connection.client)
        self.started = clock.monotonic()
        wait, self.wait = self.wait, None
        with trio.CancelScope() as self._scope:
            if self._ends:
                self._scope.cancel()
            try:
                if first is not None:
                    await first()
                result = await driver.go_on(self.work, wait, self.name, gives_back)
            except Exception as error:
                self.error = error
                if self._left and not isinstance(error, KafkaError):
                    logger.error("A request whose client had gone failed", exc_info=error)
            else:
                if not isinstance(result, Wait):
                    self.reply = result
                elif self._left:
                    self.close()  # nobody waits for its signal any more
                else:
                    self.wait = result
        if self._scope.cancelled_caught:
            self.close()  # the end may have come before the work took a step, which holds places

    def leave(self, *, ends: bool) -> None:
        """The client has gone, and nobody will take the outcome; `ends`: so the work need not be
        finished, and ends at its next wait."""
        self._left, self._ends = True, ends
        if ends and self._scope is not None:
            self._scope.cancel()

    def close(self) -> None:
        """Drop work that nobody goes on with."""
        if self.work is not None:
            self.work.close()

    def note_times(self) -> None:
        """Count its times, when it is done."""
        metrics = self.route.metrics
        metrics.note_queue(self.queue_s)
        metrics.note_local(self.local_s)
        if self.work is not None:
            metrics.note_remote(self.remote_s)

    async def forget(self) -> None:
        """Free request and reply, whose answer is encoded; what a controller sends in turns."""
        request, self.request = self.request, None
        self.reply = self.work = None
        if self.route.most_of_brokers:  # of others, handlers may have kept a part
            await _let_go(request)


async def _let_go(message: Any) -> None:
    """Free the elements of a message one by one: a million at once would take 100 ms."""
    for name in message.__slots__:
        elements = getattr(message, name)
        if isinstance(elements, list) and elements and hasattr(elements[0], "__slots__"):
            while elements:
                await _let_go(elements.pop())
                await PAUSE
