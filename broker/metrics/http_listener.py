"""`GET /metrics` over HTTP/1.1: the part of HTTP that a scrape needs.

A connection serves one request. Its head must arrive within `_HEAD_S`, and the reply must be sent
within `_REQUEST_S` of the connection's start; at most `_AT_ONCE` replies are made at a time. There
are at most `_CONNECTIONS` connections: for one more, the oldest of those whose request has not
arrived is closed, so clients that send slowly or nothing do not keep others from scraping.
`metrics.http.listener` is "host:port"; without a host it listens on every interface, as `listeners`
does; if it is empty, nothing listens.
"""

import logging
from collections.abc import Awaitable, Callable

import trio

from broker.world.clock import Clock
from broker.world.streams import accept_streams, receive_some, send_all
from broker.world.transport import SYSTEM_DEFAULT, Stream, Transport
from config.definition import ConfigError
from config.listener import Listener

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KEY = "metrics.http.listener"
_REQUEST_BYTES = 8192
_REQUEST_S = 10.0
_HEAD_S = 5.0
_AT_ONCE = 4
_CONNECTIONS = 64
_BACKLOG = 128
"""Ample: scrapers connect one by one, seconds apart."""

Render = Callable[[], Awaitable[list[bytes]]]
"""The text of a scrape, in pieces."""


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of "host:port"; no host means every interface. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError.invalid(KEY, text, "must be host:port")
    return host.strip("[]"), int(port)


class MetricsListener:
    """Serves what `render` returns."""

    def __init__(
        self, address: tuple[str, int], render: Render, transport: Transport, clock: Clock
    ) -> None:
        host, port = address
        self._listener = Listener(name="METRICS", host=host, port=port, protocol="HTTP")
        self._render = render
        self._transport = transport
        self._clock = clock
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self._open = 0
        self._silent: dict[trio.CancelScope, None] = {}
        """The scopes of connections whose request has not arrived, the oldest first."""
        self.host = ""
        self.port = 0
        """Host and port are those bound, once `serve` has started."""

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve scrapes until cancelled. Raises BindError if the address cannot be used."""
        listening = self._transport.listen(
            self._listener,
            backlog=_BACKLOG,
            send_buffer=SYSTEM_DEFAULT,
            receive_buffer=SYSTEM_DEFAULT,
        )
        self.host, self.port = listening.bound.host, listening.bound.port
        try:
            async with trio.open_nursery() as nursery:
                task_status.started()
                await accept_streams(
                    listening,
                    self._clock,
                    lambda stream: self._welcome(nursery, stream),
                    _note_no_capacity,
                )
        finally:
            listening.close()

    def _welcome(self, nursery: trio.Nursery, stream: Stream) -> None:
        if self._open >= _CONNECTIONS:
            if not self._silent:
                stream.close()
                return
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            oldest.cancel()
        self._open += 1
        scope = trio.CancelScope()
        self._silent[scope] = None
        nursery.start_soon(self._answer, stream, scope)

    async def _answer(self, stream: Stream, silent: trio.CancelScope) -> None:
        try:
            with self._clock.timeout(_REQUEST_S):
                head = None
                with silent, self._clock.timeout(_HEAD_S):
                    head = await _head(stream)
                self._silent.pop(silent, None)
                if head is not None:
                    async with self._limiter:
                        await self._send_response(stream, head)
        except OSError:  # the scraper has gone
            pass
        finally:
            self._open -= 1
            self._silent.pop(silent, None)
            stream.close()

    async def _send_response(self, stream: Stream, head: bytes) -> None:
        try:
            response = await self._response(head)
        except Exception:
            logger.exception("A scrape of the metrics failed")
        else:
            for piece in response:
                await send_all(stream, piece)

    async def _response(self, head: bytes) -> list[bytes]:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1"):
            return _message(400, "Bad Request", [])
        if words[0] not in (b"GET", b"HEAD"):
            return _message(405, "Method Not Allowed", [])
        if words[1].split(b"?", 1)[0] not in (b"/metrics", b"/"):
            return _message(404, "Not Found", [b"see /metrics\n"])
        body = await self._render()
        return _message(200, "OK", body, with_body=words[0] == b"GET")


def _note_no_capacity(error: OSError) -> None:
    logger.error("Cannot accept scrapes of the metrics: %s", error)


async def _head(stream: Stream) -> bytes:
    received = b""
    buffer = memoryview(bytearray(_REQUEST_BYTES))
    while b"\r\n\r\n" not in received and len(received) < _REQUEST_BYTES:
        count = await receive_some(stream, buffer)
        if not count:
            break
        received += buffer[:count]
    return received


def _message(code: int, reason: str, body: list[bytes], *, with_body: bool = True) -> list[bytes]:
    head = (
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {sum(map(len, body))}\r\nConnection: close\r\n\r\n"
    )
    return [head.encode(), *(piece for piece in body if piece and with_body)]
