"""From the bytes of one frame to its reply: header, route, codec, handler.

A refusal (`KafkaError`) or a bug of a handler becomes that API's error response (decision 7); bad
bytes raise ProtocolError, which ends the connection. A request whose reply the handler's first step
did not make is returned as `Unanswered`; the connection waits for the reply.
"""

import logging
from functools import partial
from typing import Any, Final, NamedTuple

from broker.network.activity import Activity, Ending
from broker.network.large_messages import ReplyRoom, Room
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.routes import Route, RouteTable
from broker.request import ConnectionInfo, RequestContext
from broker.world.loop_watch import NOTED_S
from broker.world.turns import TURN_S
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.framing import RequestHeader, UnsupportedVersion, parse_request_header
from protocol.schema.parse_code import ManyElements
from storage.waits import PAUSE, Pause, Wait, Work

logger = logging.getLogger(__name__)


class LargeRequest(NamedTuple):
    """The position of a request body that has too many elements to be parsed in one go."""

    start: int
    end: int


PARSED_PER_PAUSE: Final = 16
"""Elements between two pauses: some ten microseconds."""


class Unanswered(NamedTuple):
    """A request whose reply is not ready to be sent."""

    route: Route
    context: RequestContext
    request: Any
    reply: Any
    """A `LargeRequest`, which is to be parsed; else the reply, if nothing is left of the work."""
    work: Work[Any] | None
    """The handler's work, which the first step did not finish."""
    wait: Wait | None
    """What the work waits for."""
    since: float
    """Monotonic seconds at which the first step ended."""
    queue_s: float = 0.0
    """Seconds until the handler's turn came."""
    local_s: float = 0.0
    """Seconds that the handler has worked so far."""


def named(route: Route, context: RequestContext) -> str:
    """Name a request for the log."""
    return (
        f"{route.metrics.name} version {context.api_version} from "
        f"{context.connection.connection_id} (client id {context.client_id})"
    )


class RequestHandling:
    """Handles the frames of one connection. Replies that are ready go to `replies`."""

    __slots__ = ("_activity", "_channel", "_info", "_made", "_monotonic", "_replies", "_routes")

    def __init__(
        self,
        info: ConnectionInfo,
        routes: RouteTable,
        channel: RequestChannel,
        activity: Activity,
        replies: Replies,
    ) -> None:
        self._channel = channel
        self.use(routes, info)
        self._activity = activity
        self._replies = replies
        self._monotonic = channel.clock.monotonic

    def use(self, routes: RouteTable, info: ConnectionInfo) -> None:
        """Use this table of routes, and this client's `info`, from the next request on."""
        self._routes = routes
        self._made = routes.made
        self._info = info

    def handle(
        self, buffer: bytearray, view: memoryview, start: int, end: int, now: float
    ) -> Unanswered | None:
        """Answer the request in `start .. end`, or return it if its reply must be waited for.

        `view` is a view of the whole `buffer`; `now` is when the frame came, in monotonic seconds.
        Raises ProtocolError.
        """
        try:
            key, version, correlation_id, client_id, body = parse_request_header(
                buffer, view, start, end
            )
        except UnsupportedVersion as error:
            self._refuse_version(error.header.api_key, error.header.correlation_id, error)
            return None
        route = self._made.get((key << 16) | version) or self._routes.route(key, version)
        if route is None:
            header = RequestHeader(key, version, correlation_id, client_id, body)
            self._refuse_version(key, correlation_id, UnsupportedVersion(header))
            return None
        context = RequestContext(
            key, version, correlation_id, client_id, self._info, now, close_connection=False
        )
        try:
            request, _ = route.parse_at(buffer, view, body, end)
        except ManyElements:
            return Unanswered(route, context, None, LargeRequest(body, end), None, None, now)
        metrics = route.metrics
        metrics.requests += 1
        work = route.handler(context, request)
        activity = self._activity
        started = activity.last
        wait = None
        try:
            wait = work.send(None)
            while wait.__class__ is Pause and self._monotonic() - started < TURN_S:
                wait = work.send(None)
        except StopIteration as end_of_work:
            wait, reply = None, end_of_work.value
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            wait, reply = None, self.error_reply(route, context, request, error)
        activity.last = finished = self._monotonic()
        local = finished - started
        if local >= NOTED_S:
            self._channel.watch.note(started, finished, partial(named, route, context))
        if wait is not None:
            return Unanswered(
                route, context, request, None, work, wait, finished, started - now, local
            )
        if context.large:
            return Unanswered(
                route, context, request, reply, None, None, finished, started - now, local
            )
        metrics.note_queue(started - now)
        metrics.note_local(local)
        self.answer(route, context, request, reply)
        return None

    async def handle_large(
        self, buffer: bytearray, view: memoryview, waiting: Unanswered, room: Room
    ) -> Unanswered:
        """Parse a `LargeRequest` in turns and take its handler's first step.

        Raises ProtocolError.
        """
        route, context, _, where, _, _, now = waiting[:7]
        steps = route.codec.parse_steps(buffer, view, where.start, where.end, route.most_elements)
        request = None
        for count, parsed in enumerate(steps):
            if parsed is not None:
                request, _, elements = parsed
                room.shrink(elements)
            elif not count % PARSED_PER_PAUSE:
                await PAUSE
        context.large = True
        metrics = route.metrics
        metrics.requests += 1
        started = self._monotonic()
        work: Work[Any] | None = route.handler(context, request)
        assert work is not None
        wait = reply = None
        try:
            wait = work.send(None)
        except StopIteration as end:
            work, reply = None, end.value
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            work, reply = None, self.error_reply(route, context, request, error)
        finished = self._activity.last = self._monotonic()
        return Unanswered(
            route, context, request, reply, work, wait, finished, started - now, finished - started
        )

    async def answer_in_turns(
        self, route: Route, context: RequestContext, request: Any, reply: Any, room: ReplyRoom
    ) -> None:
        """Append a reply of many elements. Raises ReplyTooLarge."""
        try:
            await self._replies.append_in_turns(route, context.correlation_id, reply, room)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - a reply that cannot be encoded is a handler's bug
            self.answer(route, context, request, self.error_reply(route, context, request, error))
        if context.close_connection:
            self._activity.end(Ending.HANDLER)

    def answer(self, route: Route, context: RequestContext, request: Any, reply: Any) -> None:
        """Append a reply that is ready; None if there is no reply."""
        try:
            self._replies.append(route, context.correlation_id, reply)
        except Exception as error:  # noqa: BLE001 - a reply that cannot be encoded is a handler's bug
            reply = self.error_reply(route, context, request, error)
            self._replies.append(route, context.correlation_id, reply)
        if context.close_connection:
            self._activity.end(Ending.HANDLER)

    def error_reply(
        self, route: Route, context: RequestContext, request: Any, error: Exception
    ) -> Any:
        """Return the API's error response for `error`. Raises a ProtocolError on."""
        if isinstance(error, ProtocolError):
            raise error
        if isinstance(error, KafkaError):
            code = error.code
        else:
            route.metrics.errors += 1
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            logger.error(
                "Unexpected error while handling %s version %d from %s (client id %s)",
                route.metrics.name,
                context.api_version,
                self._info.connection_id,
                context.client_id,
                exc_info=error,
            )
            if context.large:  # a reply that repeats the code for everything would take long
                raise ProtocolError("a request of many elements failed") from error
        return route.error_response(context, request, code)

    def _refuse_version(self, key: int, correlation_id: int, error: ProtocolError) -> None:
        answer = self._routes.unsupported_version(key)
        if answer is None:
            raise error
        route, reply = answer
        route.metrics.requests += 1
        self._replies.append(route, correlation_id, reply)
