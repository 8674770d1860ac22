"""One client connection: work whose steps the loop of all connections takes.

`ConnectionState` decides the next step, without a stream; `Connection` takes it, on a stream.

Decided by measurements (each saves microseconds of the fifteen that a request costs):

* After a send wait at once: the readiness reports bytes that are left again.
* Handle all complete frames of one receive in a row, and send all their replies in one call.
* No task, channel or cancel scope per request. A handler that answers at once runs right here.
* Read the clock three times per request: when its bytes came, when its handler was done, when its
  reply was sent.

The buffer belongs to the request in work until its handler has returned, because handlers patch
batches in place. If the handler has released the buffer, the connection gives it back while the
handler waits for others. Bad bytes end the connection, with a line in the log; several connections
share a line if many end so.

If the stream has to be opened first, by a TLS handshake, that is part of the work (`handshakes`).

A connection has these parts: `connection_state` (the next step), `receive_buffer` (bytes received),
`request_handling` (from a frame to its reply), `finishing` (awaiting a handler), `replies`
(sending), `activity` (its state, for the sweeper and the shutdown).
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from broker.network.activity import Activity, Ending, State
from broker.network.backlog import Backlog
from broker.network.buffers import BufferPool, PoolBuffer
from broker.network.connection_loop import WITH_OTHERS, ConnectionLoop
from broker.network.connection_state import (
    CLOSE,
    FINISH,
    RECEIVE,
    SEND,
    THROTTLE,
    WAIT_FOR_MEMORY,
    YIELD,
    ConnectionState,
    Step,
)
from broker.network.connection_work import ConnectionWork
from broker.network.endings import ClientGone
from broker.network.finishing import Finishing
from broker.network.frame_memory import FrameMemory
from broker.network.pending_request import PendingRequest
from broker.network.receive_buffer import ReceiveBuffer
from broker.network.replies import Replies
from broker.network.request_handling import RequestHandling
from broker.network.request_memory import Claim, RequestMemory
from broker.network.request_services import RequestServices
from broker.network.routes import RouteTable
from broker.network.sender import DiskReader, ShortFile
from broker.quotas.throttle import Throttle
from broker.request import ConnectionInfo
from broker.world.transport import Stream
from protocol.errors import ProtocolError
from protocol.framing import MIN_REQUEST_SIZE
from storage.logging_limit import LoggingLimit
from storage.waits import PAUSE, Work

logger = logging.getLogger(__name__)

INCOMPLETE_BYTES: Final = 160 * 1024 * 1024
"""The default of `incomplete.request.max.bytes`."""


Opening = Callable[[Stream, ConnectionInfo, Callable[[], object]], Work[str | None]]
"""(stream, client, function that ends the connection): opens the stream by a handshake. Returns the
client's principal if the handshake has proved one. Raises OSError."""


class ConnectionServices:
    """The parts that all connections of a broker share."""

    __slots__ = (
        "backlog",
        "buffers",
        "disk",
        "frames",
        "max_request_bytes",
        "memory",
        "requests",
        "telling_bad_bytes",
    )

    def __init__(
        self,
        requests: RequestServices,
        *,
        max_request_bytes: int,
        disk: DiskReader,
        buffers: BufferPool | None = None,
        memory: RequestMemory | None = None,
        frames: FrameMemory | None = None,
    ) -> None:
        self.requests = requests
        self.max_request_bytes = max_request_bytes
        self.disk = disk
        self.buffers = buffers or BufferPool()
        self.memory = memory
        self.frames = frames or FrameMemory(INCOMPLETE_BYTES)
        self.backlog = Backlog()
        self.telling_bad_bytes = LoggingLimit(requests.clock)


class Guard(Protocol):
    """Takes the frames of a connection whose client has to prove who it is."""

    def handle(
        self, buffer: PoolBuffer, view: memoryview, start: int, end: int, now: float
    ) -> PendingRequest | Throttle | None:
        """See `RequestHandling.handle`."""
        ...

    def note_bad_bytes(self, error: ProtocolError) -> None:
        """The client sent bytes that are no request, which ends the connection."""
        ...

    def forget(self) -> None:
        """The connection has ended: drop the references to it."""
        ...


def _nothing() -> None:
    pass


class Connection:
    """Receives requests, has them handled and sends the replies."""

    __slots__ = (
        "_finishing",
        "_guard",
        "_handling",
        "_let_in",
        "_loop",
        "_most_bytes",
        "_opening",
        "_replies",
        "_requests",
        "_state",
        "_stream",
        "_telling",
        "_work",
        "info",
    )

    def __init__(
        self,
        stream: Stream,
        info: ConnectionInfo,
        services: ConnectionServices,
        opening: Opening | None = None,
    ) -> None:
        """`opening` is done before the first receive."""
        requests = services.requests
        activity = Activity(requests.clock.monotonic())
        self.info = info
        self._stream = stream
        self._requests = requests
        self._opening = opening
        self._telling = services.telling_bad_bytes
        self._loop: ConnectionLoop
        self._work: ConnectionWork | None = None
        self._most_bytes = services.max_request_bytes
        self._guard: Guard | None = None
        self._let_in: Callable[[], object] = _nothing
        self._replies = Replies(stream, activity, services.disk, requests.clock)
        self._handling = RequestHandling(info, requests.routes, requests, activity, self._replies)
        self._state = ConnectionState(
            activity,
            ReceiveBuffer(
                services.buffers, services.frames, info.client, self._give_up, services.backlog
            ),
            self._handling.handle,
            self._replies.answered,
            max_request_bytes=services.max_request_bytes,
            claim=None if services.memory is None else Claim(services.memory),
        )
        self._replies.blocked = self._state.blocked
        self._finishing = Finishing(self._state, self._handling, self._replies, requests)

    def serve(
        self,
        loop: ConnectionLoop,
        ended: Callable[[], object],
        let_in: Callable[[], object] = _nothing,
    ) -> None:
        """Serve until the client disconnects or sends bad bytes, or the server closes it; then call
        `ended`. `let_in` is called when the client has proved who it is."""
        self._let_in = let_in
        self._loop = loop
        self._work = loop.serve(self._stream, self.run(), self.info.client, self._named, ended)

    def _named(self) -> str:
        request = self._finishing.name()
        return request or f"requests and replies of {self.info.connection_id}"

    async def run(self) -> None:
        """Receive, have handled and reply until the connection ends, for whatever reason."""
        state = self._state
        ended_well = False
        try:
            # After an error the buffer is not reused: a traceback may keep views of it, and a
            # worker may still write to it.
            try:
                if self._opening is not None:
                    await self._open(self._opening)
                await self._serve()
                ended_well = True
            except ProtocolError as problem:
                self._tell(problem)
                replies = self._replies  # to the requests before the bad bytes
                if replies.answered and not replies.send_nowait(state.came_at):
                    await replies.send(state.came_at)
        except ShortFile:
            logger.warning(
                "Closing connection %s: a segment was truncated while it was sent",
                self.info.connection_id,
            )
        except ClientGone as gone:
            state.activity.end(Ending.GONE)
            logger.debug("Connection %s ended: %s", self.info.connection_id, gone)
        except OSError as error:
            logger.debug("Connection %s ended: %s", self.info.connection_id, error)
        except Exception:
            logger.exception("Closing connection %s after an error", self.info.connection_id)
        finally:
            if state.claim is not None:
                state.claim.release()
            self._replies.drop()
            state.incoming.close(reusable=ended_well)
            self._forget()

    def _forget(self) -> None:
        """Drop the references to this connection, so that its memory is free with the last one.

        In a cycle, a connection that lived for a while would wait for a full garbage collection,
        which hardly ever comes.
        """
        if self._guard is not None:
            self._guard.forget()
        self._work = None
        self._let_in = _nothing

    def _tell(self, error: ProtocolError) -> None:
        """Log why bad bytes end the connection, within the limit on such lines."""
        if self._guard is not None and self.info.is_stranger:
            self._guard.note_bad_bytes(error)
            return
        events = self._telling.count_event()
        if events:
            more = f" ({events} times)" if events > 1 else ""
            logger.info("Closing connection %s: %s%s", self.info.connection_id, error, more)
        else:
            logger.debug("Closing connection %s: %s", self.info.connection_id, error)

    async def _open(self, opening: Opening) -> None:
        """Open the stream, and note the client's principal. Raises OSError if that fails."""
        activity = self._state.activity
        activity.state = State.OPENING
        work = self._work
        assert work is not None
        work.is_opening = True
        give_up = partial(self._end_if, True, Ending.OPENING)
        principal = await opening(self._stream, self.info, give_up)
        if principal is not None:
            self.info = replace(self.info, principal=principal)
            self._handling.identify(self.info)
        work.is_opening = False
        activity.state = State.BUSY
        activity.last = self._requests.clock.monotonic()

    def use(
        self, routes: RouteTable, principal: str | None = None, *, by_token: bool = False
    ) -> None:
        """Use another table of routes, and another principal if given, from the next request on.

        A connection begins with the table that most share (`RequestServices.routes`).
        """
        if principal is not None:
            self.info = replace(
                self.info, principal=principal, by_token=by_token, is_stranger=False
            )
        self._handling.use(routes, self.info)

    def guard(
        self,
        make: Callable[[RequestHandling, Activity], Guard],
        info: ConnectionInfo,
        strangers: RouteTable,
        most_bytes: int,
    ) -> None:
        """Hand frames to a guard, with the routes of `strangers`, until `let_in` is called."""
        self.info = info
        self._handling.use(strangers, self.info)
        self._guard = make(self._handling, self._state.activity)
        self._state.hand_to(self._guard.handle, least_bytes=0, most_bytes=most_bytes)

    def let_in(self, principal: str, *, by_token: bool, guarded: bool) -> None:
        """Serve all APIs to the client, which has proved that it is this principal.

        If `guarded`, frames of the client still pass the guard first.
        """
        assert self._guard is not None
        self.use(self._requests.routes, principal, by_token=by_token)
        if guarded:
            self._state.hand_to(self._guard.handle, least_bytes=0, most_bytes=self._most_bytes)
        else:
            self._state.hand_to(
                self._handling.handle, least_bytes=MIN_REQUEST_SIZE, most_bytes=self._most_bytes
            )
        self._let_in()

    # ---- for the server

    @property
    def is_stranger(self) -> bool:
        """Whether the client has not proved yet who it is."""
        return self.info.is_stranger

    def close(self) -> None:
        """End after the request in work; at once if there is none, or it is parked and nobody has
        answered it yet."""
        work = self._work
        if self._state.close() and work is not None and not work.is_answered:
            work.end()

    def abort(self) -> None:
        """End now; a request that changes something is finished first."""
        if self._work is not None:
            self._work.end()

    def cut(self) -> None:
        """End now, even if the request in work changes something: the broker stops."""
        if self._work is not None:
            self._work.cut()

    @property
    def state(self) -> State:
        """The present state, for the sweeper and the shutdown."""
        return self._state.activity.state

    @property
    def kept(self) -> int:
        """Bytes that the connection keeps while its client takes nothing (`backlog`)."""
        return self._state.incoming.kept

    def is_unread(self, now: float, patience_s: float) -> bool:
        """Whether the client has taken no byte of a reply for `patience_s`."""
        activity = self._state.activity
        return activity.state is State.SENDING and now - activity.last >= patience_s

    @property
    def ending(self) -> Ending | None:
        """The reason to handle no further request; None if there is none, or after `abort`."""
        return self._state.activity.ending

    def check_idle(self, now: float, max_idle_s: float) -> bool:
        """Close if nothing happened for `max_idle_s`; return whether it was closed.

        A connection whose request is parked or in work is not idle, unless its client has sent the
        end of the stream and waits for nothing but a parked request.
        """
        work = self._work
        has_sent_all = work is not None and work.has_sent_all
        stuck = self._state.is_stuck(now, max_idle_s, has_sent_all=has_sent_all)
        return self._end_if(stuck, Ending.IDLE)

    def check_overdue(self, now: float) -> bool:
        """Close if others wait for the memory of its unfinished request; return whether it was.

        A client that keeps sending has `LONGEST_S` for its request (`frame_memory`, rule 4).
        """
        return self._end_if(self._state.is_overdue(now), Ending.OVERDUE)

    def push_out(self, reason: Ending) -> None:
        """Close, because others need the place or the memory."""
        self._end_if(True, reason)

    def _give_up(self) -> None:
        self._end_if(True, Ending.OVERDUE)

    def _end_if(self, due: bool, reason: Ending) -> bool:
        if due:
            self._state.activity.end(reason)
            self.abort()
        return due

    # ---- the loop

    async def _serve(self) -> None:  # noqa: C901 - a call each would cost more
        state, replies = self._state, self._replies
        incoming = state.incoming
        stream = self._stream
        receive = stream.recv_into
        work = self._work
        assert work is not None
        loop = self._loop
        monotonic = self._requests.clock.monotonic
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
                if loop.gathers:
                    await WITH_OTHERS
                    state.began = 0.0  # others had their turn
                if not replies.send_nowait(state.came_at):
                    await replies.send(state.came_at)
                step = state.sent()
                if step is RECEIVE and stream.tells_again and not incoming.have:
                    state.nothing_came()
                    await stream.readable
                    step = state.resumed()
            elif step is FINISH:
                step = state.finished(await self._finishing.finish(work, loop))
            elif step is YIELD:
                await PAUSE
                step = state.yielded(monotonic())
            elif step is CLOSE:
                return
            elif step is not RECEIVE:
                step = await self._wait(step)

    async def _wait(self, step: Step) -> Step:
        """Carry out a step that waits or yields; return the next step."""
        state = self._state
        claim, hold = state.claim, state.incoming.hold
        if step is THROTTLE:
            await self._throttle()
            return state.finished()
        if step is WAIT_FOR_MEMORY:
            assert claim is not None
            await claim.memory.wait_available()
        else:
            assert hold is not None
            await hold.wait(self._requests.clock.monotonic)
        return state.resumed()

    async def _throttle(self) -> None:
        """Send the replies, and wait until the throttle of the client is over.

        If the connection has ended meanwhile, a stop of the broker would wait for nothing.
        """
        state, replies = self._state, self._replies
        throttle: Throttle = state.waiting
        with throttle:
            if replies.answered and not replies.send_nowait(state.since):
                await replies.send(state.since)
            if state.activity.ending is None:
                state.throttled()
                await self._requests.deadlines.wait_until(throttle.until)
        state.activity.last = self._requests.clock.monotonic()
