"""One client connection: the hot loop of the broker.

What measurements decided (each is worth microseconds on a request that costs fifteen):

* Receive first, wait only when there is nothing: `recv_into` on a raw non-blocking socket, and
  `trio.lowlevel.wait_readable` on EAGAIN.
* All complete frames of one receive are handled in a row, and all their replies leave in one send.
* No task, channel or cancel scope per request. A handler that answers at once runs right here.
* After `TURN_S` of work the replies are sent and the other connections get their turn.
* The clock is asked three times per request: bytes arrived, handler done, reply sent.

Rules:

* One request is in work at a time, replies keep the order of requests (S-NET-1).
* The buffer belongs to the request in work until its handler has returned (for a coroutine: until
  it is done): handlers patch batches in place. While a reply is parked the buffer is given back.
* While a reply is parked the connection watches for the client's disconnect without consuming what
  the client sent ahead; bytes that were sent ahead hide an end behind them, so from then on the
  server's sweeper asks the operating system (`check_parked`).
* Bad bytes end the connection, with one line in the log. A refusal (`KafkaError`) or a bug of a
  handler becomes that API's error response (decision 7).
"""

import enum
import logging
import socket
import struct
from collections.abc import Callable
from types import CoroutineType
from typing import Any, NamedTuple

import trio

from broker.network.buffers import GROWTH, STANDARD_BYTES, BufferPool
from broker.network.request_channel import RequestChannel, Route
from broker.network.request_memory import Claim, RequestMemory
from broker.network.request_metrics import RequestMetrics, note_sent
from broker.network.sender import DiskReader, ShortFile, peer_has_closed, send_bytes, send_pieces
from broker.request import ConnectionInfo, Pending, RequestContext
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.framing import (
    MIN_REQUEST_SIZE,
    SIZE_BYTES,
    RequestHeader,
    UnsupportedVersion,
    frame_size,
    parse_request_header,
)

logger = logging.getLogger(__name__)

TURN_S = 0.0005
"""Work between two yields. A yield costs as much as appending two batches, so it is paid by the
time that others had to wait, and not after each 64 KB as it once was."""

_SIZE = struct.Struct(">i").unpack_from
_HEADER_V0 = struct.Struct(">ii").pack
_HEADER_V1 = struct.Struct(">iiB").pack
_WAITS = frozenset((Pending, CoroutineType))
_NO_BUFFER = bytearray()
_NOTHING = memoryview(_NO_BUFFER)


class State(enum.Enum):
    """What a connection is doing, for whoever wants to end it."""

    IDLE = "waits for the client's next bytes"
    BUSY = "handles requests"
    PARKED = "waits for a reply and for the client's disconnect"
    PARKED_BLIND = "waits for a reply; bytes sent ahead hide a disconnect"
    SENDING = "the client is slow to take a reply"
    MUTED = "waits until less memory is taken by requests"


class ConnectionServices:
    """What all connections of a broker share."""

    __slots__ = ("buffers", "channel", "disk", "max_request_bytes", "memory", "monotonic")

    def __init__(
        self,
        channel: RequestChannel,
        *,
        max_request_bytes: int,
        buffers: BufferPool | None = None,
        disk: DiskReader | None = None,
        memory: RequestMemory | None = None,
    ) -> None:
        self.channel = channel
        self.max_request_bytes = max_request_bytes
        self.buffers = buffers or BufferPool()
        self.disk = disk or DiskReader()
        self.memory = memory
        self.monotonic: Callable[[], float] = channel.clock.monotonic


class Connection:
    """Reads requests, has them answered, sends the replies. Owns its socket."""

    __slots__ = (
        "_buffer",
        "_channel",
        "_claim",
        "_closing",
        "_ended_well",
        "_have",
        "_out",
        "_scope",
        "_services",
        "_slices",
        "_socket",
        "_turn",
        "_view",
        "info",
        "last_active",
        "state",
    )

    def __init__(
        self, sock: socket.socket, info: ConnectionInfo, services: ConnectionServices
    ) -> None:
        """`sock` is connected and non-blocking."""
        self.info = info
        self.state = State.BUSY
        self.last_active = services.monotonic()
        """Monotonic seconds at which bytes came, a request was done or a reply left, lately."""
        self._socket = sock
        self._services = services
        self._channel = services.channel
        self._claim = None if services.memory is None else Claim(services.memory)
        self._scope = trio.CancelScope()
        self._closing = False
        self._buffer = _NO_BUFFER
        self._view = _NOTHING
        self._have = 0  # bytes in the buffer, from its begin
        self._ended_well = False
        self._out: list[Any] = []  # pieces of the replies of this turn
        self._slices = False  # some of them may be slices of files
        self._turn: list[RequestMetrics] = []  # whose replies they are

    async def run(self) -> None:
        """Serve until the client ends, breaks the rules, or the server closes it."""
        try:
            # A traceback may keep views of the buffer, a worker may still write to it: unless all
            # goes well nobody else gets it.
            with self._scope:
                await self._serve()
                self._ended_well = True
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
            self._socket.close()
            if self._claim is not None:
                self._claim.release()
            buffer = self._detached()
            if self._ended_well:
                self._services.buffers.release(buffer)
            else:
                self._services.buffers.forget(buffer)

    def close(self) -> None:
        """End it after the request in work; at once when none is, or it is only parked."""
        self._closing = True
        if self.state is not State.BUSY and self.state is not State.SENDING:
            self._scope.cancel()

    def abort(self) -> None:
        """End it now."""
        self._scope.cancel()

    def check_idle(self, now: float, max_idle_s: float) -> bool:
        """Close it when nothing happened for so long; a parked or working request is not idle."""
        if now - self.last_active <= max_idle_s:
            return False
        if self.state is not State.IDLE and self.state is not State.SENDING:
            return False
        self.abort()
        return True

    def check_parked(self) -> None:
        """Notice a disconnect that hides behind bytes sent ahead."""
        if self.state is State.PARKED_BLIND and peer_has_closed(self._socket):
            self.abort()

    # ---- receiving

    async def _serve(self) -> None:
        receive = self._socket.recv_into
        services = self._services
        monotonic = services.monotonic
        claim = self._claim
        began = 0.0  # when this turn began; 0: with the next bytes
        large = 0  # size of the large frame of the last turn, if there was one
        while not self._closing:
            if claim is not None and not claim.size:
                await self._mute_if_exhausted(claim)
            if not self._buffer:
                self._use(services.buffers.acquire(large))
            try:
                received = receive(self._view[self._have :])
            except BlockingIOError:
                await self._wait_for_bytes()
                began = 0.0
                continue
            if received == 0:
                return
            now = self.last_active = monotonic()
            self._have += received
            if claim is not None:
                claim.hold(self._have)
            position, wanted, large, began = await self._handle_frames(now, began or now)
            if self._turn:
                await self._flush(now)
            self._keep_rest(position, wanted)
            if claim is not None and (position or claim.size != wanted):
                claim.release()
                await self._mute_if_exhausted(claim)
                claim.hold(wanted)
            if self.last_active - began >= TURN_S:
                began = 0.0
                await trio.lowlevel.checkpoint()

    async def _mute_if_exhausted(self, claim: Claim) -> None:
        """While requests take all memory, read nothing (`queued.max.request.bytes`)."""
        if claim.memory.exhausted:
            self.state = State.MUTED
            await claim.memory.wait_available()
            self.state = State.BUSY

    async def _handle_frames(self, now: float, began: float) -> tuple[int, int, int, float]:
        """Every complete frame in the buffer.

        Returns the position behind them, the size of the incomplete frame there (0: not known
        yet), the size of the last large one, and when the turn began.
        """
        limit = self._services.max_request_bytes
        position = wanted = large = 0
        while self._have - position >= SIZE_BYTES and not self._closing:
            (size,) = _SIZE(self._buffer, position)
            if size < MIN_REQUEST_SIZE or size > limit:
                frame_size(self._buffer, position, SIZE_BYTES, limit)  # raises, with the reason
            start = position + SIZE_BYTES
            end = start + size
            if end > self._have:
                wanted = SIZE_BYTES + size
                break
            if size > STANDARD_BYTES:
                large = size
            waiting = self._handle(start, end, now)
            if waiting is None:
                position = end
            else:
                position = await self._finish(waiting, end, now)
                now = began = self.last_active
            if self.last_active - began >= TURN_S:
                if self._turn:
                    await self._flush(now)
                await trio.lowlevel.checkpoint()
                began = self.last_active = self._services.monotonic()
        return position, wanted, large, began

    async def _wait_for_bytes(self) -> None:
        """Holds no buffer, or one of the right size, while nothing comes."""
        buffers = self._services.buffers
        if self._have == 0:
            self._services.buffers.release(self._detached())
        elif buffers.crowded and len(self._view) > GROWTH * self._have:
            buffers.release(self._pack(0))
        self.state = State.IDLE
        await trio.lowlevel.wait_readable(self._socket)
        self.state = State.BUSY

    def _keep_rest(self, position: int, wanted: int) -> None:
        """The rest behind `position` moves to the front, of a larger buffer if need be."""
        rest = self._have - position
        self._have = rest
        if rest == 0:
            return
        view = self._view
        if wanted > len(view):
            buffers = self._services.buffers
            larger = buffers.free_large(wanted)
            if larger is None and rest == len(view):
                larger = buffers.grown(wanted, rest)
            if larger is not None:
                old = self._buffer
                content = view[position : position + rest]
                self._use(larger)
                self._view[:rest] = content
                del content, view
                buffers.release(old)
                return
        if position:
            view[:rest] = view[position : position + rest]

    # ---- handling

    def _handle(self, start: int, end: int, now: float) -> "_Waiting | None":
        """Answer the request in `start .. end`; what must be waited for is returned instead."""
        buffer, view = self._buffer, self._view
        try:
            key, version, correlation_id, client_id, body = parse_request_header(
                buffer, view, start, end
            )
        except UnsupportedVersion as error:
            self._refuse_version(error.header.api_key, error.header.correlation_id, error)
            return None
        channel = self._channel
        route = channel.routes.get((key << 16) | version) or channel.route(key, version)
        if route is None:
            header = RequestHeader(key, version, correlation_id, client_id, body)
            self._refuse_version(key, correlation_id, UnsupportedVersion(header))
            return None
        request, _ = route.parse_at(buffer, view, body, end)
        context = RequestContext(
            key, version, correlation_id, client_id, self.info, now, close_connection=False
        )
        metrics = route.metrics
        metrics.requests += 1
        try:
            reply = route.handler(context, request)
        except Exception as error:  # noqa: BLE001 - a bug of one handler is answered (decision 7)
            reply = self._error_reply(route, context, request, error)
        started, finished = self.last_active, self._services.monotonic()
        self.last_active = finished
        metrics.queue += started - now
        metrics.local += finished - started
        if reply.__class__ in _WAITS:
            return _Waiting(route, context, request, reply, finished)
        self._answer(route, context, request, reply)
        return None

    async def _finish(self, waiting: "_Waiting", end: int, now: float) -> int:
        """Wait for a reply; the position behind the request, in the buffer as it is afterwards."""
        route, context, request, reply, since = waiting
        metrics = route.metrics
        if self._turn:
            try:
                await self._flush(now)
            except BaseException:
                _discard(reply)
                raise
        monotonic = self._services.monotonic
        if reply.__class__ is CoroutineType:
            work = await self._channel.send(reply)
            metrics.queue += work.started - since
            since = monotonic()
            metrics.local += since - work.started
            reply = work.reply
            if work.error is not None:
                reply = self._error_reply(route, context, request, work.error)
        if reply.__class__ is Pending:
            if not reply.done:
                self._services.buffers.release_parked(self._pack(end))
                if self._claim is not None:
                    self._claim.release()
                end = 0
                await self._wait_parked(reply)
                metrics.remote += monotonic() - since
            reply = reply.reply
        self.last_active = monotonic()
        self._answer(route, context, request, reply)
        return end

    async def _wait_parked(self, pending: Pending) -> None:
        """Until the reply is there. Raises ConnectionResetError when the client goes first."""
        scope = trio.CancelScope()
        pending.notify(scope.cancel)
        if self._closing:
            scope.cancel()
        self.state = State.PARKED
        try:
            with scope:
                await self._wait_disconnected()
        finally:
            self.state = State.BUSY
            pending.abandon()
        if not pending.done:
            raise ConnectionResetError("the client went away while its request was parked")

    async def _wait_disconnected(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            try:
                ahead = self._socket.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            if not ahead:
                return
            self.state = State.PARKED_BLIND
            await trio.sleep_forever()

    def _refuse_version(self, key: int, correlation_id: int, error: ProtocolError) -> None:
        answer = self._channel.unsupported_version(key)
        if answer is None:
            raise error
        route, reply = answer
        route.metrics.requests += 1
        self._append(route, correlation_id, reply)

    def _error_reply(
        self, route: Route, context: RequestContext, request: Any, error: Exception
    ) -> Any:
        if isinstance(error, ProtocolError):
            raise error
        if isinstance(error, KafkaError):
            code = error.code
        else:
            route.metrics.errors += 1
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            logger.error(
                "Unexpected error while handling %s version %d from %s (client id %s)",
                route.metrics.name,
                context.api_version,
                self.info.connection_id,
                context.client_id,
                exc_info=error,
            )
        return route.error_response(context, request, code)

    # ---- answering

    def _answer(self, route: Route, context: RequestContext, request: Any, reply: Any) -> None:
        pieces = len(self._out)
        try:
            self._append(route, context.correlation_id, reply)
        except Exception as error:  # noqa: BLE001 - a reply that cannot be encoded is a handler's bug
            del self._out[pieces:]
            reply = self._error_reply(route, context, request, error)
            self._append(route, context.correlation_id, reply)
        if context.close_connection:
            self._closing = True

    def _append(self, route: Route, correlation_id: int, reply: Any) -> None:
        """Encode a reply behind those of this turn; None is no reply."""
        if reply is not None:
            out = self._out
            if route.may_carry_files:
                first = len(out)
                out.append(b"")
                route.build_into(reply, out.append)
                size = sum(map(len, out[first + 1 :]))
                out[first] = _frame_head(route, size, correlation_id)
                self._slices = True
            else:
                pieces: list[bytes] = []
                route.build_into(reply, pieces.append)
                body = b"".join(pieces)
                out.append(_frame_head(route, len(body), correlation_id) + body)
        self._turn.append(route.metrics)

    async def _flush(self, received: float) -> None:
        """Send the replies of this turn. A checkpoint only if the peer is slow."""
        out = self._out
        done = self.last_active
        if self._slices:
            self.state = State.SENDING
            await send_pieces(self._socket, out, self._services.disk, self._note_progress)
            self.state = State.BUSY
            self._slices = False
        elif out:
            data = out[0] if len(out) == 1 else b"".join(out)
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent != len(data):
                self.state = State.SENDING
                rest = memoryview(data)[sent:]
                await send_bytes(self._socket, rest, self._note_progress)
                self.state = State.BUSY
        out.clear()
        self.last_active = self._services.monotonic()
        note_sent(self._turn, received, done, self.last_active)
        self._turn.clear()

    def _note_progress(self) -> None:
        self.last_active = self._services.monotonic()

    # ---- the buffer

    def _use(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)

    def _pack(self, position: int) -> bytearray:
        """What is behind `position` moves to a small buffer; the old one is the caller's."""
        rest = self._have - position
        packed = self._services.buffers.packed(self._view[position : self._have]) if rest else None
        old = self._detached()
        self._have = rest
        if packed is not None:
            self._use(packed)
        return old

    def _detached(self) -> bytearray:
        buffer, self._buffer = self._buffer, _NO_BUFFER
        self._view = _NOTHING
        return buffer


def _frame_head(route: Route, size: int, correlation_id: int) -> bytes:
    """Size and response header before a body of `size` bytes."""
    if route.flexible_header:
        return _HEADER_V1(size + 5, correlation_id, 0)
    return _HEADER_V0(size + 4, correlation_id)


class _Waiting(NamedTuple):
    """A request whose reply is not there yet."""

    route: Route
    context: RequestContext
    request: Any
    reply: Any
    since: float


def _discard(reply: Any) -> None:
    if reply.__class__ is Pending:
        reply.abandon()
    else:
        reply.close()
