"""Waits for a reply that is not ready, and appends it to the replies of the connection.

The request may be with a worker or a task aside, parked, or still to be parsed in turns
(`broker.request` lists the kinds of reply). The connection receives nothing meanwhile (S-NET-1).
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
    """Finishes the requests of one connection."""

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
        """Wait for the reply to `ConnectionState.waiting` and append it; send it if it is large.

        `abort` ends the connection. Raises ConnectionResetError if the client disconnected first,
        OSError, and ProtocolError.
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
        """Wait for the reply and append it. `room` is that of a large request, given back while it
        is parked."""
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
                # Free the parsed request and reply: the client may be slow to take the bytes.
                del waiting, request, reply
                if room is not None:
                    room.shrink(0)
                replies, came_at = self._replies, self._state.since
                if not replies.send_nowait(came_at):
                    await replies.send(came_at)
        else:
            self._handling.answer(route, context, request, reply)

    async def _outcome(self, waiting: Waiting, room: Room | None) -> Any:
        """Return the final reply of a request that must be waited for.

        Each wait may end in a reply that must be waited for again (`broker.request`).
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
                    # While the request is parked, others may use its buffer, memory and room.
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
