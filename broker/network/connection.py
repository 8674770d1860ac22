"""One client connection: work that the loop of all connections goes on with.

`ConnectionState` decides the next step, without a stream; `Connection` takes it, on a stream.

Decided by measurements (each saves microseconds of the fifteen that a request costs):

* After a send wait at once: the readiness tells again of bytes that are left.
* Handle all complete frames of one receive in a row, and send all their replies in one call.
* No task, channel or cancel scope per request. A handler that answers at once runs right here.
* Read the clock three times per request: bytes arrived, handler done, reply sent.

The buffer belongs to the request in work until its handler has returned, because handlers patch
batches in place; a handler that has released it gives it back while it is parked or works aside.
Bad bytes end the connection, with one line in the log.

Its parts: `connection_state` (the next step), `receive_buffer` (bytes received), `request_handling`
(from a frame to its reply), `finishing` (waiting for a reply), `replies` (sending), `activity`
(what it is doing, for the sweeper and the shutdown).
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from broker.network.activity import Activity, Ending, State
from broker.network.buffers import BufferPool
from broker.network.connection_loop import ClientGone, ConnectionLoop, ConnectionWork
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
from broker.world.transport import Stream
from protocol.errors import ProtocolError
from storage.waits import PAUSE

logger = logging.getLogger(__name__)

INCOMPLETE_BYTES: Final = 160 * 1024 * 1024
"""The default of `incomplete.request.max.bytes`."""


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
    """Receives requests, has them handled and sends the replies."""

    __slots__ = (
        "_channel",
        "_finishing",
        "_handling",
        "_replies",
        "_served",
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
        self._served: ConnectionWork | None = None
        self._replies = Replies(stream, activity, services.disk, channel.clock)
        self._handling = RequestHandling(info, channel.routes, channel, activity, self._replies)
        self._state = ConnectionState(
            activity,
            ReceiveBuffer(services.buffers, services.frames, info.client, self._give_up),
            self._handling.handle,
            self._replies.turn,
            max_request_bytes=services.max_request_bytes,
            claim=None if services.memory is None else Claim(services.memory),
        )
        self._finishing = Finishing(self._state, self._handling, self._replies, channel)

    def serve(self, loop: ConnectionLoop, ended: Callable[[], object]) -> None:
        """Serve until the client disconnects or sends bad bytes, or the server closes it; then call
        `ended`."""
        self._served = loop.serve(self._stream, self.run(), self.info.client, self._named, ended)

    def _named(self) -> str:
        return f"requests and replies of {self.info.connection_id}"

    async def run(self) -> None:
        """Receive, have handled and reply until the connection ends, however it does."""
        state = self._state
        ended_well = False
        try:
            # After an error the buffer is not reused: a traceback may keep views of it, and a
            # worker may still write to it.
            try:
                await self._serve()
                ended_well = True
            except ProtocolError as error:
                logger.info("Closing connection %s: %s", self.info.connection_id, error)
                if self._replies.turn:  # of the requests before the bad bytes
                    await self._replies.send(state.came_at)
        except ShortFile:
            logger.warning(
                "Closing connection %s: a segment was cut while it was sent",
                self.info.connection_id,
            )
        except ClientGone as error:
            state.activity.end(Ending.GONE)
            logger.debug("Connection %s ended: %s", self.info.connection_id, error)
        except OSError as error:
            logger.debug("Connection %s ended: %s", self.info.connection_id, error)
        except Exception:
            logger.exception("Closing connection %s after an error", self.info.connection_id)
        finally:
            if state.claim is not None:
                state.claim.release()
            state.incoming.close(reusable=ended_well)

    def use(self, routes: RouteTable, principal: str | None = None) -> None:
        """Use another table of routes, and principal if given, from the next request on.

        A connection begins with the table of its request channel.
        """
        if principal is not None:
            self.info = replace(self.info, principal=principal)
        self._handling.use(routes, self.info)

    # ---- for the server

    def close(self) -> None:
        """End it after the request in work; at once if there is none or it is only parked."""
        if self._state.close():
            self.abort()

    def abort(self) -> None:
        """End it now."""
        if self._served is not None:
            self._served.end()

    @property
    def state(self) -> State:
        """What it is doing."""
        return self._state.activity.state

    @property
    def ending(self) -> Ending | None:
        """Why it handles no further request; None if it does, or was aborted."""
        return self._state.activity.ending

    def check_idle(self, now: float, max_idle_s: float) -> bool:
        """Close it if nothing happened for `max_idle_s`; return whether it was.

        A connection whose request is parked or in work is not idle.
        """
        return self._end_if(self._state.is_stuck(now, max_idle_s), Ending.IDLE)

    def check_overdue(self, now: float) -> bool:
        """Close it if others wait for the memory of its unfinished request; return whether it was.

        A client that keeps sending has `LONGEST_S` for its request (`frame_memory`, rule 4).
        """
        return self._end_if(self._state.is_overdue(now), Ending.OVERDUE)

    def _give_up(self) -> None:
        self._end_if(True, Ending.OVERDUE)

    def _end_if(self, due: bool, reason: Ending) -> bool:
        if due:
            self._state.activity.end(reason)
            self.abort()
        return due

    # ---- the loop

    async def _serve(self) -> None:
        state, replies = self._state, self._replies
        incoming = state.incoming
        stream = self._stream
        receive, tells_again = stream.recv_into, stream.tells_again
        monotonic = self._channel.clock.monotonic
        step = state.begin()
        while True:
            if step is RECEIVE:
                try:
                    count = receive(incoming.view[incoming.have : state.end])
                except BlockingIOError:
                    count = -1  # handled below, because the exception may hold a view of the buffer
                if count < 0:
                    state.nothing_came()
                    await stream.readable
                    step = state.resumed()
                    continue
                step = state.received(count, monotonic()) if count else state.client_ended()
            if step is SEND:
                if not replies.send_nowait(state.came_at):
                    await replies.send(state.came_at)
                step = state.sent()
                if step is RECEIVE and tells_again and not incoming.have:
                    state.nothing_came()
                    await stream.readable
                    step = state.resumed()
            elif step is FINISH:
                await self._finishing.finish(self.abort)
                step = state.finished()
            elif step is YIELD:
                await PAUSE
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
