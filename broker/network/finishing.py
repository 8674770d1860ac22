"""Finishes a request in work: awaits the rest of its handler's work, and appends the reply.

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
from broker.network.replies import Replies
from broker.network.request_handling import RequestHandling
from broker.network.request_in_work import RequestInWork
from broker.network.request_services import RequestServices
from broker.quotas.throttle import Throttle
from broker.world.driver import rest
from protocol.errors import ProtocolError
from storage.waits import Signal


class Finishing:
    """Finishes the requests of one connection."""

    __slots__ = ("_handling", "_in_work", "_large", "_monotonic", "_replies", "_state")

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
        self._in_work: RequestInWork | None = None
        """The request whose work the connection awaits."""

    def name(self) -> str | None:
        """Name the request in work for the log; None if there is none."""
        return None if self._in_work is None else self._in_work.name()

    async def finish(self, connection: ConnectionWork, loop: ConnectionLoop) -> Throttle | None:
        """Have the reply to `ConnectionState.waiting` made, and append it; send it if it is large.

        `connection` is the connection's work, of `loop`. Returns the throttle of the client; None
        if it is not throttled. Raises OSError and ProtocolError.
        """
        state, handling = self._state, self._handling
        in_work: RequestInWork = state.waiting
        if self._replies.turn:
            await self._send_before(in_work, connection, loop)
        state.waiting, state.ahead = None, 0
        if state.incoming.kept:
            state.incoming.keep(0)
        in_work.state = state
        if in_work.span is not None:
            return await self._finish_large(in_work, connection)
        if in_work.work is not None:
            await self._work(in_work, connection)
        if in_work.context.large:
            return await self._answer_large(in_work, connection)
        throttle = self._settle(in_work)
        handling.answer(in_work.route, in_work.context, in_work.request, in_work.reply)
        return throttle

    async def _finish_large(
        self, in_work: RequestInWork, connection: ConnectionWork
    ) -> Throttle | None:
        """Parse the request in turns first, when there is room for its elements."""
        span, incoming, large = in_work.span, self._state.incoming, self._large
        assert span is not None
        most = in_work.route.most_elements_of(in_work.context)
        with await large.room_for(span.end - span.start, most) as room:
            await self._handling.parse_large(incoming.buffer, incoming.view, in_work, room, most)
            now = self._monotonic()
            in_work.queue_s, in_work.since = now - in_work.since, now
            in_work.room = room
            in_work.work = self._handling.work(in_work)
            await self._work(in_work, connection)
            return await self._answer_large(in_work, connection)

    async def _work(self, in_work: RequestInWork, connection: ConnectionWork) -> None:
        """Await the rest of the handler's work in that of `connection`, which bears its route."""
        work, monotonic = in_work.work, self._monotonic
        assert work is not None
        self._in_work = in_work
        in_work.connection_work, in_work.monotonic = connection, monotonic
        connection.route = in_work.route
        try:
            in_work.reply = await rest(work, in_work.wait, in_work, monotonic)
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            in_work.reply = self._handling.error_reply(
                in_work.route, in_work.context, in_work.request, error
            )
        finally:
            connection.route = self._in_work = in_work.work = in_work.connection_work = None
        now = monotonic()
        in_work.local_s += now - in_work.since
        in_work.since = now
        if connection.ending is not None:  # the end was kept from the handler's work
            raise connection.ending

    def _settle(self, in_work: RequestInWork) -> Throttle | None:
        """The reply is there: count the request's times, and charge the client."""
        in_work.note_times()
        self._state.activity.last = in_work.since
        return self._handling.settle(in_work.route, in_work.context, in_work.reply, in_work.local_s)

    async def _answer_large(
        self, in_work: RequestInWork, connection: ConnectionWork
    ) -> Throttle | None:
        """Append a reply of many elements in turns, and send it."""
        throttle = self._settle(in_work)
        with self._large.reply_room(connection.end) as reply_room:
            await self._handling.answer_in_turns(in_work, reply_room)
            await in_work.forget()  # the client may be slow to take the bytes
            if in_work.room is not None:
                in_work.room.shrink(0)
            replies, came_at = self._replies, self._state.since
            if not replies.send_nowait(came_at):
                await replies.send(came_at, reply_room.size)
        return throttle

    # ---- the replies before

    async def _send_before(
        self, in_work: RequestInWork, connection: ConnectionWork, loop: ConnectionLoop
    ) -> None:
        """Send the earlier replies; if that takes long, run the work of `in_work` beside it.

        If the work has run beside, the reply to `in_work` is there when this returns.
        """
        replies, since = self._replies, self._state.since
        done: Signal[BaseException | None] = Signal()
        try:
            if replies.send_nowait(since):
                return
            in_work.is_ahead = True
            if in_work.work is not None:
                connection.beside = self._go_on_beside(in_work, done, loop)
            else:
                self._made_ahead(in_work)
                done.fire()
            await replies.send(since)
            in_work.is_ahead = False
            if not done.fired:
                in_work.state = self._state
                if in_work.waits_for_others():
                    in_work.state.parked(released=in_work.context.released)
                await (done.parked() if in_work.route.ends_with_client else done)
        except BaseException:
            in_work.is_ahead, in_work.state = False, None
            if in_work.work is not None:
                (connection.beside or self._go_on_beside(in_work, done, loop)).leave()
            raise
        finally:
            connection.beside = None
        if done.value is not None:
            raise done.value
        now = self._monotonic()
        in_work.remote_s += now - in_work.since
        in_work.since = now

    def _go_on_beside(
        self, in_work: RequestInWork, done: Signal[BaseException | None], loop: ConnectionLoop
    ) -> ConnectionWork:
        """Run the work of `in_work` beside the connection's, and call `done` at its end."""
        work = partial(self._beside, in_work, done)
        return loop.beside(work, in_work.route, in_work.context.connection.client, in_work.name)

    async def _beside(
        self, in_work: RequestInWork, done: Signal[BaseException | None], beside: ConnectionWork
    ) -> None:
        failure: BaseException | None = ConnectionEnded()
        try:
            await self._work(in_work, beside)
            failure = None
            if in_work.is_ahead:
                self._made_ahead(in_work)
        except ProtocolError as error:
            failure = error
        finally:
            done.fire(failure)

    def _made_ahead(self, in_work: RequestInWork) -> None:
        """The reply was made while earlier replies wait for the client."""
        if in_work.reply is not None:
            self._state.made_ahead(self._replies.size_in_memory(in_work.route, in_work.reply))
