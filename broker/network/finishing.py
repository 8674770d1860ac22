"""Waits for a reply that is not ready, and appends it to the replies of the connection.

The request may be with a worker or a task aside, parked, or still to be parsed in turns
(`broker.network.unanswered`). The connection receives nothing meanwhile (S-NET-1).
"""

from collections.abc import Callable
from functools import partial

from broker.network.activity import State
from broker.network.connection_state import ConnectionState
from broker.network.large_messages import Room
from broker.network.meanwhile import Meanwhile
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.request_handling import RequestHandling
from broker.network.unanswered import Unanswered, is_long, is_parked
from broker.quotas.throttle import Throttle
from broker.request import RequestContext
from storage.waits import Signal, Wait


class Finishing:
    """Finishes the requests of one connection."""

    __slots__ = ("_channel", "_handling", "_replies", "_state")

    def __init__(
        self,
        state: ConnectionState,
        handling: RequestHandling,
        replies: Replies,
        channel: RequestChannel,
    ) -> None:
        self._state = state
        self._handling = handling
        self._replies = replies
        self._channel = channel

    async def finish(self, abort: Callable[[], None]) -> Throttle | None:
        """Wait for the reply to `ConnectionState.waiting` and append it; send it if it is large.

        Returns the throttle of the client; None if it is not throttled.

        `abort` ends the connection. Raises ClientGone if the client reset the connection while the
        request was parked, OSError, and ProtocolError.
        """
        state, replies = self._state, self._replies
        waiting: Unanswered = state.waiting
        gone_on = await self._send_before(waiting) if replies.turn else None
        state.waiting, state.ahead = None, 0
        if state.incoming.kept:
            state.incoming.keep(0)
        span = waiting.span
        if span is None:
            if gone_on is not None:
                await self._aside(waiting, gone_on, None)
            return await self._answer(waiting, abort, None)
        large, incoming = self._channel.large, state.incoming
        most = waiting.route.most_elements_of(waiting.context)
        with await large.room_for(span.end - span.start, most) as room:
            await self._handling.handle_large(incoming.buffer, incoming.view, waiting, room, most)
            return await self._answer(waiting, abort, room)

    async def _send_before(self, waiting: Unanswered) -> Signal[None] | None:
        """Send the replies before that to `waiting`.

        Returns what fires when a task aside has gone on with its work; None if none is at it.
        """
        replies, since = self._replies, self._state.since
        meanwhile = Meanwhile(waiting, self._channel.asides, partial(self._made, waiting))
        try:
            if replies.send_nowait(since):
                return None
            meanwhile.begin()
            await replies.send(since)
        except BaseException:
            meanwhile.leave()
            raise
        gone_on = meanwhile.end()
        now = self._channel.clock.monotonic()
        waiting.remote_s += now - waiting.since
        waiting.since = now
        return gone_on

    def _made(self, waiting: Unanswered) -> None:
        """The reply to `waiting` was made while those before it wait for the client."""
        if waiting.reply is not None:
            self._state.made_ahead(self._replies.size_in_memory(waiting.route, waiting.reply))

    async def _answer(
        self, waiting: Unanswered, abort: Callable[[], None], room: Room | None
    ) -> Throttle | None:
        """Wait for the reply and append it; return the throttle of its client, if it has one.

        `room` is that of a large request, given back while it is parked.
        """
        route, context, handling = waiting.route, waiting.context, self._handling
        while waiting.wait is not None:
            await self._go_on(waiting, room)
        waiting.note_times()
        if waiting.error is not None:
            waiting.reply = handling.error_reply(route, context, waiting.request, waiting.error)
        self._state.activity.last = self._channel.clock.monotonic()
        throttle = handling.settle(route, context, waiting.reply, waiting.local_s)
        if context.large:
            with self._channel.large.reply_room(abort) as reply_room:
                await handling.answer_in_turns(waiting, reply_room)
                await waiting.forget()  # the client may be slow to take the bytes
                if room is not None:
                    room.shrink(0)
                replies, came_at = self._replies, self._state.since
                if not replies.send_nowait(came_at):
                    await replies.send(came_at, reply_room.size)
        else:
            handling.answer(route, context, waiting.request, waiting.reply)
        return throttle

    async def _go_on(self, waiting: Unanswered, room: Room | None) -> None:
        """Have the next part of a request's work done, wherever it waits."""
        route, monotonic, since = waiting.route, self._channel.clock.monotonic, waiting.since
        wait = waiting.wait
        assert wait is not None
        if is_parked(wait):
            try:
                await self._park(wait, waiting.context, room)
            except BaseException:
                waiting.close()
                raise
            stepped = monotonic()
            waiting.remote_s += stepped - since
            waiting.step()
            waiting.since = monotonic()
            waiting.local_s += waiting.since - stepped
        elif route.in_workers and not is_long(wait):
            try:
                await self._channel.pool.go_on(waiting)
            except BaseException:
                waiting.leave(ends=False)
                raise
            waiting.queue_s += waiting.started - since
            waiting.since = monotonic()
            waiting.local_s += waiting.since - waiting.started
        else:
            await self._aside(waiting, self._channel.asides.begin(waiting), room)

    async def _aside(self, waiting: Unanswered, gone_on: Signal[None], room: Room | None) -> None:
        """Wait until a task aside has gone on with a request's work."""
        ends_with_client = waiting.route.ends_with_client
        try:
            if ends_with_client:
                await self._park(gone_on.parked(), waiting.context, room)
            else:
                await gone_on
        except BaseException:
            waiting.leave(ends=ends_with_client)
            raise
        since, waiting.since = waiting.since, self._channel.clock.monotonic()
        waiting.remote_s += waiting.since - since

    async def _park(self, wait: Wait, context: RequestContext, room: Room | None) -> None:
        """Wait until it is fired. Raises ClientGone if the client resets it first.

        While the request is parked, others may use the memory that it has released.
        """
        self._state.parked(released=context.released)
        if room is not None and context.released:
            room.shrink(0)
        await wait
        self._state.activity.state = State.BUSY
