"""One client connection: the hot loop of the broker.

`ConnectionState` decides what is done next, without a stream; here it is done, on a stream.

What measurements decided (each is worth microseconds on a request that costs fifteen):

* Receive first, wait only when there is nothing (`broker.world.transport`).
* All complete frames of one receive are handled in a row, and all their replies leave in one send.
* No task, channel or cancel scope per request. A handler that answers at once runs right here.
* The clock is asked three times per request: bytes arrived, handler done, reply sent.

The buffer belongs to the request in work until its handler has returned (for a coroutine: until it
is done): handlers patch batches in place. While a request is parked, or its reply made aside, the
buffer is given back. Bad bytes end the connection, with one line in the log.

Its parts: what comes next (`connection_state`), what has come (`receive_buffer`), what becomes of a
frame (`request_handling`), how a reply that is not there is waited for (`finishing`, `parking`),
what is sent (`replies`), what all that amounts to (`activity`).
"""

import logging
from dataclasses import replace
from typing import Final

import trio

from broker.network.activity import Activity, Ending, State
from broker.network.buffers import BufferPool
from broker.network.connection_state import (
    CLOSE,
    FINISH,
    RECEIVE,
    SEND,
    WAIT_FOR_MEMORY,
    YIELD,
    ConnectionState,
    Step,
)
from broker.network.finishing import Finishing
from broker.network.frame_memory import FrameMemory
from broker.network.receive_buffer import ReceiveBuffer
from broker.network.replies import Replies
from broker.network.request_channel import RequestChannel
from broker.network.request_handling import RequestHandling
from broker.network.request_memory import Claim, RequestMemory
from broker.network.routes import RouteTable
from broker.network.sender import DiskReader, ShortFile
from broker.request import ConnectionInfo
from broker.world.loop_watch import NOTED_S
from broker.world.transport import Stream
from protocol.errors import ProtocolError

logger = logging.getLogger(__name__)

INCOMPLETE_BYTES: Final = 160 * 1024 * 1024
"""`incomplete.request.max.bytes`, where nobody says otherwise."""


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
        "_channel",
        "_finishing",
        "_handling",
        "_replies",
        "_scope",
        "_state",
        "_stream",
        "info",
    )

    def __init__(self, stream: Stream, info: ConnectionInfo, services: ConnectionServices) -> None:
        channel = services.channel
        activity = Activity(channel.clock.monotonic())
        self.info = info
        self._stream = stream
        self._channel = channel
        self._scope = trio.CancelScope()
        self._replies = Replies(stream, activity, services.disk, channel.clock)
        self._handling = RequestHandling(info, channel.routes, channel, activity, self._replies)
        self._state = ConnectionState(
            activity,
            ReceiveBuffer(services.buffers, services.frames),
            self._handling.handle,
            self._replies.turn,
            max_request_bytes=services.max_request_bytes,
            claim=None if services.memory is None else Claim(services.memory),
        )
        self._finishing = Finishing(self._state, self._handling, self._replies, channel, stream)

    async def run(self) -> None:
        """Serve until the client ends, breaks the rules, or the server closes it."""
        state = self._state
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
            if state.claim is not None:
                state.claim.release()
            state.incoming.close(reusable=ended_well)

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
        if self._state.close():
            self._scope.cancel()

    def abort(self) -> None:
        """End it now."""
        self._scope.cancel()

    @property
    def state(self) -> State:
        """What it is doing."""
        return self._state.activity.state

    @property
    def ending(self) -> Ending | None:
        """Why it handles no further request; None: it does, or it was cut."""
        return self._state.activity.ending

    def check_idle(self, now: float, max_idle_s: float) -> bool:
        """Close it when nothing happened for so long; a parked or working request is not idle."""
        return self._end_if(self._state.is_stuck(now, max_idle_s), Ending.IDLE)

    def check_overdue(self, now: float) -> bool:
        """Close it when it holds memory that others wait for, and its client does not hurry."""
        return self._end_if(self._state.is_overdue(now), Ending.OVERDUE)

    def check_parked(self) -> None:
        """Notice a disconnect that hides behind bytes sent ahead, or that are not read."""
        if self._state.activity.is_blind:
            self._end_if(self._stream.peer_has_closed(), Ending.GONE)

    def _end_if(self, due: bool, reason: Ending) -> bool:
        if due:
            self._state.activity.end(reason)
            self.abort()
        return due

    # ---- the loop

    async def _serve(self) -> None:
        state, replies = self._state, self._replies
        incoming = state.incoming
        receive = self._stream.recv_into
        monotonic = self._channel.clock.monotonic
        step = state.begin()
        while True:
            if step is RECEIVE:
                try:
                    count = receive(incoming.view[incoming.have : state.end])
                except BlockingIOError:
                    count = -1  # told below: the exception may hold a view of the buffer
                if count < 0:
                    state.nothing_came()
                    await self._stream.wait_readable()
                    step = state.resumed()
                    continue
                step = state.received(count, monotonic()) if count else state.client_ended()
            if step is SEND:
                if not replies.send_nowait(state.came_at):
                    await replies.send(state.came_at)
                step = state.sent()
            elif step is FINISH:
                await self._finishing.finish(self.abort)
                step = state.finished()
            elif step is YIELD:
                if not state.is_cut:
                    self._note_turn()
                await trio.lowlevel.checkpoint()
                step = state.yielded(monotonic())
            elif step is CLOSE:
                return
            elif step is not RECEIVE:
                await self._wait_for_memory(step)
                step = state.resumed()

    async def _wait_for_memory(self, step: Step) -> None:
        claim, hold = self._state.claim, self._state.incoming.hold
        if step is WAIT_FOR_MEMORY:
            assert claim is not None
            await claim.memory.wait_available()
        else:
            assert hold is not None
            await hold.wait(self._channel.clock.monotonic)

    def _note_turn(self) -> None:
        """Also where the handlers were quick and encoding their replies was not."""
        began, ended = self._state.began, self._state.activity.last
        if ended - began >= NOTED_S:
            self._channel.watch.note(
                began, ended, lambda: f"requests and replies of {self.info.connection_id}"
            )
