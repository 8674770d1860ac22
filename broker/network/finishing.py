"""Finishes a pending request: awaits the rest of its handler's work, and appends the reply.

The connection waits for whatever the handler waits for, and receives nothing meanwhile (S-NET-1,
decision 107); `broker.network.connection_work` has the rules of what may end it there.

If earlier replies cannot leave at once, because the client is slow to take them, the handler's work
runs beside the sending. The work may hold locks and places, or stand in a line for them: if it
stood still until the client reads, all other requests that need these would wait for that client.
"""

from functools import partial

from broker.network.connection_loop import ConnectionLoop
from broker.network.connection_state import ConnectionState
from broker.network.connection_work import ConnectionWork
from broker.network.endings import ConnectionEnded
from broker.network.pending_request import PendingRequest
from broker.network.replies import Replies
from broker.network.request_handling import RequestHandling
from broker.network.request_services import RequestServices
from broker.quotas.throttle import Throttle
from broker.world.driver import rest
from protocol.errors import ProtocolError
from storage.waits import Signal


class Finishing:
    """Finishes the requests of one connection."""

    __slots__ = ("_handling", "_large", "_monotonic", "_pending", "_replies", "_state")

    def __init__(
        self,
        state: ConnectionState,
        handling: RequestHandling,
        replies: Replies,
        requests: RequestServices,
    ) -> None:
        self._state = state
        self._handling = handling
        self._replies = replies
        self._large = requests.large
        self._monotonic = requests.clock.monotonic
        self._pending: PendingRequest | None = None
        """The request whose work the connection awaits."""

    def name(self) -> str | None:
        """Name the request in work for the log; None if there is none."""
        return None if self._pending is None else self._pending.name()

    async def finish(self, connection: ConnectionWork, loop: ConnectionLoop) -> Throttle | None:
        """Have the reply to `ConnectionState.waiting` made, and append it; send it if it is large.

        `connection` is the connection's work, of `loop`. Returns the throttle of the client; None
        if it is not throttled. Raises OSError and ProtocolError.
        """
        state, handling = self._state, self._handling
        pending: PendingRequest = state.waiting
        if self._replies.answered:
            await self._send_before(pending, connection, loop)
        state.waiting, state.ahead = None, 0
        if state.incoming.kept:
            state.incoming.keep(0)
        pending.state = state
        if pending.span is not None:
            return await self._finish_large(pending, connection)
        if pending.rest is not None:
            await self._await_rest(pending, connection)
        if pending.context.large:
            return await self._answer_large(pending, connection)
        throttle = self._settle(pending)
        handling.answer(pending.route, pending.context, pending.request, pending.reply)
        return throttle

    async def _finish_large(
        self, pending: PendingRequest, connection: ConnectionWork
    ) -> Throttle | None:
        """Parse the request in turns first, when there is room for its elements."""
        span, incoming, large = pending.span, self._state.incoming, self._large
        assert span is not None
        most = pending.route.most_elements_of(pending.context)
        with await large.room_for(span.end - span.start, most) as room:
            await self._handling.parse_large(incoming.buffer, incoming.view, pending, room, most)
            now = self._monotonic()
            pending.queue_s, pending.since = now - pending.since, now
            pending.room = room
            pending.rest = self._handling.begin_large(pending)
            await self._await_rest(pending, connection)
            return await self._answer_large(pending, connection)

    async def _await_rest(self, pending: PendingRequest, connection: ConnectionWork) -> None:
        """Await the rest of the handler's work in that of `connection`, which bears its route."""
        work, monotonic = pending.rest, self._monotonic
        assert work is not None
        self._pending = pending
        pending.connection_work, pending.monotonic = connection, monotonic
        connection.route = pending.route
        try:
            pending.reply = await rest(work, pending.wait, pending, monotonic)
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            pending.reply = self._handling.error_reply(
                pending.route, pending.context, pending.request, error
            )
        finally:
            connection.route = self._pending = pending.rest = pending.connection_work = None
        now = monotonic()
        pending.local_s += now - pending.since
        pending.since = now
        if connection.to_throw is not None:  # the end was kept from the handler's work
            raise connection.to_throw

    def _settle(self, pending: PendingRequest) -> Throttle | None:
        """The reply is there: count the request's times, and charge the client."""
        pending.note_times()
        self._state.activity.last = pending.since
        return self._handling.settle(pending.route, pending.context, pending.reply, pending.local_s)

    async def _answer_large(
        self, pending: PendingRequest, connection: ConnectionWork
    ) -> Throttle | None:
        """Append a reply of many elements in turns, and send it."""
        throttle = self._settle(pending)
        with self._large.reply_room(connection.end) as reply_room:
            await self._handling.answer_in_turns(pending, reply_room)
            await pending.forget()  # the client may be slow to take the bytes
            if pending.room is not None:
                pending.room.shrink(0)
            replies, came_at = self._replies, self._state.since
            if not replies.send_nowait(came_at):
                await replies.send(came_at, reply_room.size)
        return throttle

    # ---- the replies before

    async def _send_before(
        self, pending: PendingRequest, connection: ConnectionWork, loop: ConnectionLoop
    ) -> None:
        """Send the earlier replies; if they cannot leave at once, run the work of `pending` beside.

        If the work has run beside, the reply to `pending` is there when this returns.
        """
        replies, since = self._replies, self._state.since
        done: Signal[BaseException | None] = Signal()
        try:
            if replies.send_nowait(since):
                return
            pending.earlier_unsent = True
            if pending.rest is not None:
                connection.request_work = self._go_on_beside(pending, done, loop)
            else:
                self._made_ahead(pending)
                done.fire()
            await replies.send(since)
            pending.earlier_unsent = False
            if not done.fired:
                pending.state = self._state
                if pending.waits_for_others():
                    pending.state.parked(released=pending.context.released)
                await (done.parked() if pending.route.ends_with_client else done)
        except BaseException:
            pending.earlier_unsent, pending.state = False, None
            if pending.rest is not None:  # it may hold locks, so it ends as after a reset
                (connection.request_work or self._go_on_beside(pending, done, loop)).reset()
            raise
        finally:
            connection.request_work = None
        if done.value is not None:
            raise done.value
        now = self._monotonic()
        pending.remote_s += now - pending.since
        pending.since = now

    def _go_on_beside(
        self, pending: PendingRequest, done: Signal[BaseException | None], loop: ConnectionLoop
    ) -> ConnectionWork:
        """Run the work of `pending` beside the connection's, and fire `done` at its end."""
        work = partial(self._beside, pending, done)
        return loop.run_beside(work, pending.route, pending.context.connection.client, pending.name)

    async def _beside(
        self, pending: PendingRequest, done: Signal[BaseException | None], beside: ConnectionWork
    ) -> None:
        failure: BaseException | None = ConnectionEnded()
        try:
            await self._await_rest(pending, beside)
            failure = None
            if pending.earlier_unsent:
                self._made_ahead(pending)
        except ProtocolError as error:
            failure = error
        finally:
            done.fire(failure)

    def _made_ahead(self, pending: PendingRequest) -> None:
        """The reply was made while earlier replies wait for the client: count its bytes.

        A reply of many elements is left out. Mostly its elements are made while it is encoded, in
        turns; to encode it here would take seconds, and count bytes that are not there yet.
        """
        if pending.reply is not None and not pending.context.large:
            self._state.made_ahead(self._replies.size_in_memory(pending.route, pending.reply))
