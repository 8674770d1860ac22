"""Waits for a reply that is not ready, and appends it to the replies of the connection.

The request may be with a worker or a task aside, parked, or still to be parsed in turns
(`broker.network.continuation`). The connection receives nothing meanwhile (S-NET-1).
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from broker.network.activity import State
from broker.network.connection_state import ConnectionState
from broker.network.continuation import Continuation, is_long, is_parked
from broker.network.large_messages import Room
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.request_handling import LargeRequest, RequestHandling, Unanswered, named
from broker.request import RequestContext
from storage.waits import Wait


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

    async def finish(self, abort: Callable[[], None]) -> None:
        """Wait for the reply to `ConnectionState.waiting` and append it; send it if it is large.

        `abort` ends the connection. Raises ClientGone if the client hung up while the request was
        parked, OSError, and ProtocolError.
        """
        state, replies = self._state, self._replies
        waiting: Unanswered = state.waiting
        state.waiting = None
        if replies.turn:
            try:
                if not replies.send_nowait(state.since):
                    await replies.send(state.since)
            except BaseException:
                self._leave(waiting)
                raise
        where = waiting.reply
        if where.__class__ is not LargeRequest:
            del where
            await self._answer(waiting, abort, None)
            return
        large, incoming = self._channel.large, state.incoming
        with await large.room_for(where.end - where.start, waiting.route.most_elements) as room:
            handle = self._handling.handle_large
            await self._answer(  # not through a variable, which would keep the request
                await handle(incoming.buffer, incoming.view, waiting, room), abort, room
            )

    def _leave(self, waiting: Unanswered) -> None:
        """The client has gone before anybody went on with its request."""
        if waiting.work is None:
            return
        rest = self._rest(waiting)
        if waiting.route.ends_with_client or is_parked(rest.wait):
            rest.close()
        else:
            rest.leave(ends=False)
            with suppress(trio.ClosedResourceError):  # the broker stops: the work is dropped
                self._channel.asides.begin(rest)

    def _rest(self, waiting: Unanswered) -> Continuation:
        route, context, _, _, work, wait = waiting[:6]
        assert work is not None
        assert wait is not None
        return Continuation(work, wait, context.connection.client, partial(named, route, context))

    async def _answer(
        self, waiting: Unanswered, abort: Callable[[], None], room: Room | None
    ) -> None:
        """Wait for the reply and append it. `room` is that of a large request, given back while it
        is parked."""
        route, context, request, reply = waiting[:4]
        if waiting.work is not None:
            reply = await self._outcome(waiting, room)
        else:
            route.metrics.note_queue(waiting.queue_s)
            route.metrics.note_local(waiting.local_s)
        self._state.activity.last = self._channel.clock.monotonic()
        if context.large:
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

    async def _outcome(self, waiting: Unanswered, room: Room | None) -> Any:
        """Have the rest of a request's work done, wherever it waits, and return the reply."""
        route, context, request, _, _, _, since, queue, local = waiting
        metrics, monotonic = route.metrics, self._channel.clock.monotonic
        rest = self._rest(waiting)
        remote = 0.0
        while rest.wait is not None:
            wait = rest.wait
            if is_parked(wait):
                try:
                    await self._park(wait, context, room)
                except BaseException:
                    rest.close()
                    raise
                parked, since = since, monotonic()
                remote += since - parked
                rest.step()
                parked, since = since, monotonic()
                local += since - parked
            elif route.in_workers and not is_long(wait):
                try:
                    await self._channel.pool.go_on(rest)
                except BaseException:
                    rest.leave(ends=False)
                    raise
                queue += rest.started - since
                since = monotonic()
                local += since - rest.started
            else:
                gone_on = self._channel.asides.begin(rest)
                try:
                    if route.ends_with_client:
                        await self._park(gone_on.parked(), context, room)
                    else:
                        await gone_on
                except BaseException:
                    rest.leave(ends=route.ends_with_client)
                    raise
                parked, since = since, monotonic()
                remote += since - parked
        metrics.note_queue(queue)
        metrics.note_local(local)
        metrics.note_remote(remote)
        if rest.error is not None:
            return self._handling.error_reply(route, context, request, rest.error)
        return rest.reply

    async def _park(self, wait: Wait, context: RequestContext, room: Room | None) -> None:
        """Wait until it is fired. Raises ClientGone if the client hangs up first.

        While the request is parked, others may use the memory that it has released.
        """
        self._state.parked(released=context.released)
        if room is not None and context.released:
            room.shrink(0)
        await wait
        self._state.activity.state = State.BUSY
