"""An open connection: requests go out in the order of `submit`, replies come in the same order.

A connection has two tasks. One receives and fires the replies; the caller parses its reply, in its
own turn. A request goes out at once, in the caller's turn, if it is not large and nothing waits
before it. Any other one queues for the second task, which builds it in turns and waits while the
kernel's buffer is full.

The first failure ends the connection: the peer may have done a request that was sent or not, and
each caller gets the reason.
"""

import struct
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import trio

from broker.peers.asked import LARGE, PeerRequest
from broker.peers.frames import IncomingFrames
from broker.peers.peer import PeerError, UnsupportedByPeerError
from broker.peers.traffic import PeerTraffic
from broker.world.driver import Driver
from broker.world.streams import send_all
from broker.world.transport import Stream
from protocol.errors import ProtocolError
from protocol.framing import (
    build_request_header,
    parse_response_header,
    response_header_is_flexible,
)
from protocol.messages.registry import SPECS

VersionRanges = Mapping[int, tuple[int, int]]
"""API key to (lowest, highest) version."""
_NEITHER: Final = (0, -1)

_RECEIVED_PER_TURN: Final = 1 << 20
"""Bytes that are received before other tasks may run: a third of a millisecond."""
_write_size = struct.Struct(">i").pack


class PeerConnection:
    """One connection after the handshakes; see the module. Does not own the stream."""

    def __init__(
        self,
        stream: Stream,
        versions: VersionRanges,
        client_id: bytes,
        driver: Driver,
        name: str,
        traffic: PeerTraffic,
    ) -> None:
        """`versions` are those that both brokers know. `name` is the peer's, for errors."""
        self.versions: Final = versions
        self._stream: Final = stream
        self._client_id: Final = client_id
        self._driver: Final = driver
        self._name: Final = name
        self._traffic: Final = traffic
        self._correlation_id = 0
        self._under_way: deque[PeerRequest] = deque()
        self._outbox: deque[PeerRequest | memoryview] = deque()
        """Entries for the sending task; the first one stays here until it is sent."""
        self._more = trio.Event()
        self._scope = trio.CancelScope()
        self.ended: str | None = None
        """Why it has ended."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._under_way and not self._outbox

    def submit(self, asked: PeerRequest) -> None:
        """Send a request, now or when those before it are sent. Its reply fires in any case."""
        if self.ended is not None:
            asked.reply.fire(PeerError(f"{self._name}: {self.ended}"))
        elif asked.request is None:
            asked.reply.fire(None)
        elif self._has_version(asked):
            if self._outbox or asked.key in LARGE:
                self._put(asked)
            else:
                rest = self._sent_at_once(self._framed(asked, asked.pieces()))
                if rest:
                    self._put(rest)

    def end(self, why: str) -> None:
        """End it; `run` returns soon. Only the first reason counts."""
        if self.ended is None:
            self.ended = why
            self._scope.cancel()

    async def run(self) -> None:
        """Receive and send until it ends; then fail what is under way. Closes nothing."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._send)
                    try:
                        self.end(await self._receive())
                    except (OSError, ProtocolError) as error:
                        self.end(str(error))
        finally:
            self.end("this broker stops")
            waiting = [*self._under_way, *self._outbox]
            self._under_way.clear()
            self._outbox.clear()
            for asked in waiting:
                if isinstance(asked, PeerRequest):
                    asked.reply.fire(PeerError(f"{self._name}: {self.ended}"))

    # ---- sending

    def _has_version(self, asked: PeerRequest) -> bool:
        """Choose the version; return False if there is none, after the caller got an error."""
        lowest, highest = self.versions.get(asked.key, _NEITHER)
        if asked.version is None:
            asked.version = highest
        if lowest <= asked.version <= highest:
            return True
        asked.reply.fire(
            UnsupportedByPeerError(
                f"{self._name} does not serve {asked.name}"
                + (f" version {asked.version}" if highest >= 0 else "")
            )
        )
        return False

    def _framed(self, asked: PeerRequest, pieces: list[Any]) -> bytes:
        """Return the whole frame of a request, which is under way from now on."""
        assert asked.version is not None
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        asked.correlation_id = self._correlation_id
        header = build_request_header(
            asked.key, asked.version, asked.correlation_id, self._client_id
        )
        size = len(header) + sum(map(len, pieces))
        self._under_way.append(asked)
        self._traffic.requests += 1
        self._traffic.bytes_out += 4 + size
        return b"".join([_write_size(size), header, *pieces])

    def _sent_at_once(self, frame: bytes) -> memoryview | None:
        """Send what the stream takes; return the rest, None if it took all."""
        rest = memoryview(frame)
        try:
            while rest:
                rest = rest[self._stream.send(rest) :]
        except BlockingIOError:
            return rest
        except OSError as error:
            self.end(str(error))
        return None

    def _put(self, item: PeerRequest | memoryview) -> None:
        self._outbox.append(item)
        self._more.set()

    async def _send(self) -> None:
        outbox = self._outbox
        while True:
            while outbox:
                item = outbox[0]
                if isinstance(item, PeerRequest):
                    if item.dropped:
                        outbox.popleft()
                        continue
                    pieces = await self._driver.run(item.pieces_in_turns())
                    outbox[0] = memoryview(self._framed(item, pieces))
                    continue
                try:
                    await send_all(self._stream, item)
                except OSError as error:
                    self.end(str(error))
                    return
                outbox.popleft()
            self._more = trio.Event()
            await self._more.wait()

    # ---- receiving

    async def _receive(self) -> str:
        """Receive until the stream ends; return why. Raises OSError, ProtocolError."""
        stream, frames = self._stream, IncomingFrames()
        receive, wait = stream.recv_into, stream.wait_readable
        turn = 0
        while True:
            try:
                size = receive(frames.room())
            except BlockingIOError:
                turn = 0
                await wait()
                continue
            if not size:
                return "it closed the connection"
            self._traffic.bytes_in += size
            for buffer, end in frames.received(size):
                self._replied(buffer, end)
            turn += size
            if turn >= _RECEIVED_PER_TURN:
                turn = 0
                await trio.lowlevel.checkpoint()

    def _replied(self, buffer: bytes | bytearray, end: int) -> None:
        if not self._under_way:
            raise ProtocolError("an answer that nobody asked for")
        asked = self._under_way.popleft()
        assert asked.version is not None
        flexible = response_header_is_flexible(asked.key, asked.version)
        try:
            correlation_id, offset = parse_response_header(buffer, 0, end, flexible=flexible)
            if correlation_id != asked.correlation_id:
                raise ProtocolError("an answer to another request")
        except ProtocolError as error:
            asked.reply.fire(PeerError(f"{self._name}: {error}"))
            raise
        asked.reply.fire((buffer, memoryview(buffer), offset, end))


def common_versions(versions: VersionRanges) -> VersionRanges:
    """The APIs that both brokers know: API key to (lowest, highest) version; `versions` is the
    peer's."""
    found = {}
    for key, declared in SPECS.items():
        lowest, highest = versions.get(key, _NEITHER)
        lowest, highest = max(lowest, declared.min_version), min(highest, declared.max_version)
        if lowest <= highest:
            found[key] = lowest, highest
    return found
