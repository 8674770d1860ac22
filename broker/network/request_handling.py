"""From the bytes of one frame to its reply: header, route, codec, handler.

A refusal (`KafkaError`) or a bug of a handler becomes that API's error response (decision 7); bad
bytes raise ProtocolError, which ends the connection. If the handler's first turn does not make the
reply, the connection gets a `PendingRequest`, which it finishes.
"""

import logging
from functools import partial
from typing import Any, Final

from broker.network.activity import Activity, Ending
from broker.network.buffers import PoolBuffer
from broker.network.large_messages import ReplyRoom, Room
from broker.network.pending_request import PendingRequest, Span, named
from broker.network.replies import Replies
from broker.network.request_services import RequestServices
from broker.network.routes import Route, RouteTable
from broker.quotas.throttle import Throttle
from broker.request import ConnectionInfo, RequestContext, is_reply, reply_of
from broker.world.driver import take_turn
from broker.world.loop_watch import NOTED_S
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.framing import RequestHeader, UnsupportedVersion, parse_request_header
from protocol.schema.parse_code import ManyElements
from storage.waits import PAUSE

logger = logging.getLogger(__name__)

PARSED_PER_PAUSE: Final = 16
"""Elements between two pauses: some ten microseconds."""


class RequestHandling:
    """Handles the frames of one connection. Replies that are ready go to `replies`."""

    __slots__ = (
        "_activity",
        "_info",
        "_made",
        "_monotonic",
        "_quotas",
        "_replies",
        "_routes",
        "_watch",
    )

    def __init__(
        self,
        info: ConnectionInfo,
        routes: RouteTable,
        requests: RequestServices,
        activity: Activity,
        replies: Replies,
    ) -> None:
        self._watch = requests.watch
        self.use(routes, info)
        self._activity = activity
        self._replies = replies
        self._monotonic = requests.clock.monotonic
        self._quotas = requests.quotas

    def use(self, routes: RouteTable, info: ConnectionInfo) -> None:
        """Use this table of routes, and this client's `info`, from the next request on."""
        self._routes = routes
        self._made = routes.made
        self._info = info

    def identify(self, info: ConnectionInfo) -> None:
        """Note the client, which is known now."""
        self._info = info

    def handle(
        self, buffer: PoolBuffer, view: memoryview, start: int, end: int, now: float
    ) -> PendingRequest | Throttle | None:
        """Answer the request in `start .. end`, or return it if its reply must be waited for.

        `view` is a view of the whole `buffer`; the frame came at `now`, in monotonic seconds.
        Returns the throttle if the request is answered and its client throttled. Raises
        ProtocolError.
        """
        try:
            key, version, correlation_id, client_id, body = parse_request_header(
                buffer, view, start, end
            )
        except UnsupportedVersion as unsupported:
            header = unsupported.header
            self._refuse_version(header.api_key, header.correlation_id, unsupported)
            return None
        route = self._made.get((key << 16) | version) or self._routes.route(key, version)
        if route is None:
            header = RequestHeader(key, version, correlation_id, client_id, body)
            self._refuse_version(key, correlation_id, UnsupportedVersion(header))
            return None
        context = RequestContext(
            key, version, correlation_id, client_id, self._info, now, end - start
        )
        try:
            request, _ = route.parse_at(buffer, view, body, end)
        except ManyElements:
            pending = PendingRequest(route, context, now)
            pending.span = Span(body, end)
            return pending
        metrics = route.metrics
        metrics.requests += 1
        activity = self._activity
        started = activity.last
        work = wait = reply = None
        try:
            given = route.handler(context, request)
            if is_reply(given):
                reply = given
            else:
                work = given
                wait = take_turn(work, None, started, self._monotonic)
        except StopIteration as end_of_work:
            wait, reply = None, end_of_work.value
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            wait, reply = None, self.error_reply(route, context, request, error)
        activity.last = finished = self._monotonic()
        local = finished - started
        if local >= NOTED_S:
            self._watch.note(started, finished, partial(named, route, context))
        if wait is not None or context.large:
            pending = PendingRequest(route, context, finished)
            pending.request, pending.reply = request, reply
            pending.queue_s, pending.local_s = started - now, local
            if wait is not None:
                pending.rest, pending.wait = work, wait
            return pending
        metrics.note_queue(started - now)
        metrics.note_local(local)
        if self._quotas.charging is not None:
            return self.answer_in_quota(route, context, request, reply, local)
        self.answer(route, context, request, reply)
        return None

    async def parse_large(
        self, buffer: PoolBuffer, view: memoryview, pending: PendingRequest, room: Room, most: int
    ) -> None:
        """Parse a request of up to `most` elements in turns. Raises ProtocolError."""
        route, span = pending.route, pending.span
        assert span is not None
        steps = route.codec.parse_steps(buffer, view, span.start, span.end, most)
        for count, parsed in enumerate(steps):
            if parsed is not None:
                pending.request, _, elements = parsed
                room.shrink(elements)
            elif not count % PARSED_PER_PAUSE:
                await PAUSE
        pending.span = None
        pending.context.large = True
        route.metrics.requests += 1

    @staticmethod
    async def begin_large(pending: PendingRequest) -> Any:
        """The work of the handler of a request that was parsed in turns."""
        return await reply_of(pending.route.handler(pending.context, pending.request))

    async def answer_in_turns(self, pending: PendingRequest, room: ReplyRoom) -> None:
        """Append a reply of many elements. Raises ReplyTooLarge."""
        route, context = pending.route, pending.context
        try:
            await self._replies.append_in_turns(route, context.correlation_id, pending.reply, room)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - a reply that cannot be encoded is a handler's bug
            reply = self.error_reply(route, context, pending.request, error)
            self.answer(route, context, pending.request, reply)
        if context.close_connection:
            self._activity.end(Ending.HANDLER)

    def answer_in_quota(
        self, route: Route, context: RequestContext, request: Any, reply: Any, local_s: float
    ) -> Throttle | None:
        """`answer` while quotas are set; returns the throttle of the client if it has one."""
        throttle = self.settle(route, context, reply, local_s)
        self.answer(route, context, request, reply)
        return throttle

    def settle(
        self, route: Route, context: RequestContext, reply: Any, local_s: float
    ) -> Throttle | None:
        """Charge a request that is ready to be answered; `local_s`: seconds of its handler's work.

        Writes the throttle time into the reply, and returns the throttle of the client if it has
        one; None if the reply ends the connection.
        """
        charging = self._quotas.charging
        if charging is None:
            return None
        throttle = None
        if not context.close_connection:
            throttle = charging.settle(context, route.charged, reply, local_s)
        if reply is not None:
            self._replies.bill = charging.sending_bill(context)
        return throttle

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
        """Return the API's error response for `error`. Raises `error` if it is a ProtocolError."""
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
