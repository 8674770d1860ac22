"""One client connection: the hot loop of the broker.

What measurements decided (each is worth microseconds on a request that costs fifteen):

* Receive first, wait only when there is nothing (`broker.world.transport`).
* All complete frames of one receive are handled in a row, and all their replies leave in one send.
* No task, channel or cancel scope per request. A handler that answers at once runs right here.
* After `TURN_S` of work the replies are sent and the other connections get their turn.
* The clock is asked three times per request: bytes arrived, handler done, reply sent.

Rules:

* One request is in work at a time, replies keep the order of requests (S-NET-1).
* The buffer belongs to the request in work until its handler has returned (for a coroutine: until
  it is done): handlers patch batches in place. While a request is parked, or its reply made aside,
  the buffer is given back.
* Bad bytes end the connection, with one line in the log.

Its parts: what has come (`receive_buffer`), what becomes of a frame (`request_handling`), what is
sent (`replies`), how a parked reply is waited for (`parking`), what all that amounts to
(`activity`).
"""

import logging
import struct
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, Final

import trio

from broker.network.activity import Activity, State
from broker.network.buffers import STANDARD_BYTES, BufferPool
from broker.network.frame_memory import FrameMemory
from broker.network.large_messages import Room
from broker.network.parking import wait_parked
from broker.network.receive_buffer import ReceiveBuffer
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.request_handling import WAITS, LargeRequest, RequestHandling, Waiting, named
from broker.network.request_memory import Claim, RequestMemory
from broker.network.routes import RouteTable
from broker.network.sender import DiskReader, ShortFile
from broker.request import Aside, ConnectionInfo, LargeReply, Pending
from broker.world.loop_watch import NOTED_S
from broker.world.transport import Stream
from protocol.errors import ProtocolError
from protocol.framing import MIN_REQUEST_SIZE, SIZE_BYTES, frame_size

logger = logging.getLogger(__name__)

TURN_S: Final = 0.0005
"""Work between two yields. A yield costs as much as appending two batches, so it is paid by the
time that others had to wait, and not after each 64 KB as it once was."""

INCOMPLETE_BYTES: Final = 160 * 1024 * 1024
"""`incomplete.request.max.bytes`, where nobody says otherwise."""

_SIZE: Final = struct.Struct(">i").unpack_from


_BLIND: Final = frozenset((State.PARKED_BLIND, State.MUTED))


class ConnectionServices:
    """What all connections of a broker share."""

    __slots__ = ("buffers", "channel", "disk", "frames", "max_request_bytes", "memory")

    def __init__(
        self,
        channel: RequestChannel,
        *,
        max_request_bytes: int,
        disk: DiskReader,
        buffers: BufferPool | None = None,
        memory: RequestMemory | None = None,
        frames: FrameMemory | None = None,
    ) -> None:
        self.channel = channel
        self.max_request_bytes = max_request_bytes
        self.disk = disk
        self.buffers = buffers or BufferPool()
        self.memory = memory
        self.frames = frames or FrameMemory(INCOMPLETE_BYTES)


class Connection:
    """Reads requests, has them answered, sends the replies. Owns its stream."""

    __slots__ = (
        "_activity",
        "_channel",
        "_claim",
        "_handling",
        "_max_request_bytes",
        "_monotonic",
        "_received",
        "_replies",
        "_scope",
        "_stream",
        "info",
    )

    def __init__(self, stream: Stream, info: ConnectionInfo, services: ConnectionServices) -> None:
        channel = services.channel
        self.info = info
        self._stream = stream
        self._channel = channel
        self._monotonic = channel.clock.monotonic
        self._max_request_bytes = services.max_request_bytes
        self._claim = None if services.memory is None else Claim(services.memory)
        self._scope = trio.CancelScope()
        self._activity = Activity(self._monotonic())
        self._received = ReceiveBuffer(services.buffers, services.frames)
        self._replies = Replies(stream, self._activity, services.disk, channel.clock)
        self._handling = RequestHandling(
            info, channel.routes, channel, self._activity, self._replies
        )

    async def run(self) -> None:
        """Serve until the client ends, breaks the rules, or the server closes it."""
        ended_well = False
        try:
            # A traceback may keep views of the buffer, a worker may still write to it: unless all
            # goes well nobody else gets it.
            with self._scope:
                await self._serve()
                ended_well = True
        except ProtocolError as error:
            logger.info("Closing connection %s: %s", self.info.connection_id, error)
        except ShortFile:
            logger.warning(
                "Closing connection %s: a segment was cut while it was sent",
                self.info.connection_id,
            )
        except OSError as error:
            logger.debug("Connection %s ended: %s", self.info.connection_id, error)
        except Exception:
            logger.exception("Closing connection %s after an error", self.info.connection_id)
        finally:
            self._stream.close()
            if self._claim is not None:
                self._claim.release()
            self._received.close(reusable=ended_well)

    def use(self, routes: RouteTable, principal: str | None = None) -> None:
        """From the next request on serve it from this table, as this principal if one is named.

        A connection begins with the table of its request channel.
        """
        if principal is not None:
            self.info = replace(self.info, principal=principal)
        self._handling.use(routes, self.info)

    # ---- what the server does to it

    def close(self) -> None:
        """End it after the request in work; at once when none is, or it is only parked."""
        self._activity.closing = True
        if self._activity.may_be_cut:
            self._scope.cancel()

    def abort(self) -> None:
        """End it now."""
        self._scope.cancel()

    @property
    def state(self) -> State:
        """What it is doing."""
        return self._activity.state

    def check_idle(self, now: float, max_idle_s: float) -> bool:
        """Close it when nothing happened for so long; a parked or working request is not idle.

        A request that comes all too slowly is nothing.
        """
        stuck = self._activity.is_stuck(now, max_idle_s)
        hold = self._received.hold
        if hold is not None and self._activity.state is State.IDLE:
            stuck = stuck or hold.is_too_slow(now, max_idle_s)
        if stuck:
            self.abort()
        return stuck

    def check_overdue(self, now: float) -> bool:
        """Close it when it holds memory that others wait for, and its client does not hurry."""
        hold = self._received.hold
        overdue = hold is not None and self._activity.state is State.IDLE and hold.is_overdue(now)
        if overdue:
            self.abort()
        return overdue

    def check_parked(self) -> None:
        """Notice a disconnect that hides behind bytes sent ahead, or that are not read."""
        if self._activity.state in _BLIND and self._stream.peer_has_closed():
            self.abort()

    # ---- the loop

    async def _serve(self) -> None:
        receive = self._stream.recv_into
        received, replies, activity = self._received, self._replies, self._activity
        monotonic = self._monotonic
        claim = self._claim
        began = 0.0  # when this turn began; 0: with the next bytes
        large = 0  # size of the large frame of the last turn, if there was one
        while not activity.closing:
            if claim is not None and not claim.size:
                await self._mute_if_exhausted(claim)
            if not received.buffer:
                received.acquire(large)
            end = await self._take_window() if received.hold is not None else None
            try:
                count = receive(received.view[received.have : end])
            except BlockingIOError:
                count = -1  # waited for below: the exception may hold a view of the buffer
            if count <= 0:
                if count == 0:
                    return
                await self._wait_for_bytes()
                began = 0.0
                continue
            now = activity.last = monotonic()
            received.have += count
            if claim is not None:
                claim.hold(received.have)
            position, wanted, large, began = await self._handle_frames(now, began or now)
            if replies.turn and not replies.send_nowait(now):
                await replies.send(now)
            if position == received.have:
                received.clear()
            else:
                received.keep_rest(position, wanted, now)
            if claim is not None and (position or claim.size != wanted):
                claim.release()
                await self._mute_if_exhausted(claim)
                claim.hold(wanted)
            if activity.last - began >= TURN_S:
                self._note_turn(began)
                began = 0.0
                received.pause()
                await trio.lowlevel.checkpoint()

    def _note_turn(self, began: float) -> None:
        """Also where the handlers were quick and encoding their replies was not."""
        ended = self._activity.last
        if ended - began >= NOTED_S:
            self._channel.watch.note(
                began, ended, lambda: f"requests and replies of {self.info.connection_id}"
            )

    async def _take_window(self) -> int | None:
        """Up to where the buffer may be filled; None: all of it (`broker.network.frame_memory`)."""
        hold = self._received.hold
        assert hold is not None
        if not hold.is_counted:
            return None
        while not (end := hold.take_window()):
            self._activity.state = State.MUTED
            await hold.wait(self._monotonic)
            self._activity.state = State.BUSY
        return end

    async def _mute_if_exhausted(self, claim: Claim) -> None:
        """While requests take all memory, read nothing (`queued.max.request.bytes`)."""
        if claim.memory.exhausted:
            self._activity.state = State.MUTED
            await claim.memory.wait_available()
            self._activity.state = State.BUSY

    async def _wait_for_bytes(self) -> None:
        self._received.shrink_idle()
        self._activity.state = State.IDLE
        await self._stream.wait_readable()
        self._activity.state = State.BUSY

    async def _handle_frames(self, now: float, began: float) -> tuple[int, int, int, float]:
        """Every complete frame in the buffer.

        Returns the position behind them, the size of the incomplete frame there (0: not known
        yet), the size of the last large one, and when the turn began.
        """
        received, replies, activity = self._received, self._replies, self._activity
        handle = self._handling.handle
        limit = self._max_request_bytes
        position = wanted = large = 0
        if received.hold is not None:
            received.hold.received(received.have)
        while received.have - position >= SIZE_BYTES and not activity.closing:
            buffer = received.buffer
            (size,) = _SIZE(buffer, position)
            if size < MIN_REQUEST_SIZE or size > limit:
                frame_size(buffer, position, SIZE_BYTES, limit)  # raises, with the reason
            start = position + SIZE_BYTES
            end = start + size
            if end > received.have:
                wanted = SIZE_BYTES + size
                break
            if size > STANDARD_BYTES:
                large = size
            waiting = handle(buffer, received.view, start, end, now)
            if waiting is None:
                position = end
            else:
                position = await self._finish(waiting, end, now)
                now = began = activity.last
            if activity.last - began >= TURN_S:
                if replies.turn and not replies.send_nowait(now):
                    await replies.send(now)
                await trio.lowlevel.checkpoint()
                began = activity.last = self._monotonic()
        return position, wanted, large, began

    async def _finish(
        self, waiting: Waiting, end: int, now: float, room: Room | None = None
    ) -> int:
        """Wait for a reply; the position behind the request, in the buffer as it is afterwards.

        `room` is what a large request takes; while its reply is parked it takes none.
        """
        route, context, request, reply = waiting[:4]
        replies = self._replies
        if replies.turn:
            try:
                if not replies.send_nowait(now):
                    await replies.send(now)
            except BaseException:
                waiting.discard()
                raise
        if reply.__class__ is LargeRequest:
            return await self._finish_large(waiting, end, now)
        if reply.__class__ in WAITS:
            reply, end = await self._outcome(waiting, end, room)
        else:
            route.metrics.note_queue(waiting.queue_s)
            route.metrics.note_local(waiting.local_s)
        self._activity.last = self._monotonic()
        if context.large or reply.__class__ is LargeReply:
            with self._channel.large.reply_room(self.abort) as reply_room:
                await self._handling.answer_in_turns(route, context, request, reply, reply_room)
                # All that was parsed may go now: who knows how slowly the client reads.
                del waiting, request, reply
                if room is not None:
                    room.shrink(0)
                if not replies.send_nowait(now):
                    await replies.send(now)
        else:
            self._handling.answer(route, context, request, reply)
        return end

    async def _outcome(self, waiting: Waiting, end: int, room: Room | None) -> tuple[Any, int]:
        """What the reply comes to that is to be waited for, and where the request ends now.

        What is done or completed may have to be waited for again (`broker.request`).
        """
        route, context, request, reply, since, queue, local = waiting
        metrics, monotonic = route.metrics, self._monotonic
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
                    await self._wait_parked(pending, end, room)
                    end = 0
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
        return reply, end

    async def _wait_parked(self, reply: Pending, end: int, room: Room | None) -> None:
        """Meanwhile the buffer, the request's memory and its room are somebody else's."""
        self._received.shrink_parked(end)
        if self._claim is not None:
            self._claim.release()
        if room is not None:
            room.shrink(0)
        await wait_parked(reply, self._stream, self._activity)

    async def _finish_large(self, waiting: Waiting, end: int, now: float) -> int:
        """`_finish` for a request that is yet to be parsed."""
        received, where = self._received, waiting.reply
        large, handle = self._channel.large, self._handling.handle_large
        size, most = where.end - where.start, waiting.route.most_elements
        with await large.room_for(size, most) as room:
            return await self._finish(
                await handle(received.buffer, received.view, waiting, room), end, now, room
            )
