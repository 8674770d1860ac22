"""A request whose reply is not there yet: waited for, and its reply put behind the others.

It may be with a worker or a task aside, parked, or yet to be parsed in turns (`broker.request` has
the kinds of reply). The connection reads nothing meanwhile (S-NET-1).
"""

from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any

from broker.network.connection_state import ConnectionState
from broker.network.large_messages import Room
from broker.network.parking import wait_parked
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.request_handling import WAITS, LargeRequest, RequestHandling, Waiting, named
from broker.request import Aside, LargeReply, Pending
from broker.world.transport import Stream


class Finishing:
    """One connection's."""

    __slots__ = ("_channel", "_handling", "_replies", "_state", "_stream")

    def __init__(
        self,
        state: ConnectionState,
        handling: RequestHandling,
        replies: Replies,
        channel: RequestChannel,
        stream: Stream,
    ) -> None:
        self._state = state
        self._handling = handling
        self._replies = replies
        self._channel = channel
        self._stream = stream

    async def finish(self, abort: Callable[[], None]) -> None:
        """Returns when the reply to what is `waiting` stands behind the others.

        If it is large it has left. `abort` ends the connection. Raises ConnectionResetError when
        the client went first, OSError, and ProtocolError.
        """
        state, replies = self._state, self._replies
        waiting: Waiting = state.waiting
        state.waiting = None
        if replies.turn:
            try:
                if not replies.send_nowait(state.since):
                    await replies.send(state.since)
            except BaseException:
                waiting.discard()
                raise
        where = waiting.reply
        if where.__class__ is LargeRequest:
            large, most = self._channel.large, waiting.route.most_elements
            with await large.room_for(where.end - where.start, most) as room:
                incoming, handle = state.incoming, self._handling.handle_large
                await self._answer(
                    await handle(incoming.buffer, incoming.view, waiting, room), abort, room
                )
            return
        del where
        await self._answer(waiting, abort, None)

    async def _answer(self, waiting: Waiting, abort: Callable[[], None], room: Room | None) -> None:
        """`room` is what a large request takes; while its reply is parked it takes none."""
        route, context, request, reply = waiting[:4]
        if reply.__class__ in WAITS:
            reply = await self._outcome(waiting, room)
        else:
            route.metrics.note_queue(waiting.queue_s)
            route.metrics.note_local(waiting.local_s)
        self._state.activity.last = self._channel.clock.monotonic()
        if context.large or reply.__class__ is LargeReply:
            with self._channel.large.reply_room(abort) as reply_room:
                await self._handling.answer_in_turns(route, context, request, reply, reply_room)
                # All that was parsed may go now: who knows how slowly the client reads.
                del waiting, request, reply
                if room is not None:
                    room.shrink(0)
                replies, came_at = self._replies, self._state.since
                if not replies.send_nowait(came_at):
                    await replies.send(came_at)
        else:
            self._handling.answer(route, context, request, reply)

    async def _outcome(self, waiting: Waiting, room: Room | None) -> Any:
        """What the reply comes to that is to be waited for.

        What is done or completed may have to be waited for again (`broker.request`).
        """
        route, context, request, reply, since, queue, local = waiting
        metrics, monotonic = route.metrics, self._channel.clock.monotonic
        remote = 0.0
        what = partial(named, route, context)
        while (kind := reply.__class__) in WAITS:
            error = None
            if kind is CoroutineType:
                work = await self._channel.send(reply, route, what)
                queue += work.started - since
                since = monotonic()
                local += since - work.started
                reply, error = work.reply, work.error
            else:
                pending = reply if kind is Pending else self._channel.begin(reply, what)
                if not pending.done:
                    # The buffer, the request's memory and its room are somebody else's meanwhile.
                    self._state.parked()
                    if room is not None:
                        room.shrink(0)
                    await wait_parked(pending, self._stream, self._state.activity)
                    parked, since = since, monotonic()
                    remote += since - parked
                reply = pending.reply
                if kind is Aside:
                    error = pending.error
            if error is not None:
                reply = self._handling.error_reply(route, context, request, error)
        metrics.note_queue(queue)
        metrics.note_local(local)
        metrics.note_remote(remote)
        return reply
