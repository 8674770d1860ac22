"""`GET /metrics` over HTTP/1.1: the little that a scrape needs.

One request per connection, a few connections at a time, a few seconds for each: a scraper that
hangs costs nothing. `metrics.http.listener` is "host:port"; nothing listens when it is empty.
"""

import logging
from collections.abc import Awaitable, Callable

import trio

from config.definition import ConfigError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
KEY = "metrics.http.listener"
_REQUEST_BYTES = 8192
_REQUEST_S = 10.0
_AT_ONCE = 4

Render = Callable[[], Awaitable[bytes]]


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of "host:port"; no host means every interface. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError.invalid(KEY, text, "must be host:port")
    return host.strip("[]"), int(port)


class MetricsListener:
    """Serves what `render` returns."""

    def __init__(self, address: tuple[str, int], render: Render) -> None:
        self._address = address
        self._render = render
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self.port = 0
        """The real port, once it serves."""

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled. Raises OSError when the address cannot be used."""
        host, port = self._address
        listeners = await trio.open_tcp_listeners(port, host=host or None)
        self.port = listeners[0].socket.getsockname()[1]
        await trio.serve_listeners(self._answer, listeners, task_status=_Started(task_status))

    async def _answer(self, stream: trio.SocketStream) -> None:
        with trio.move_on_after(_REQUEST_S):
            async with self._limiter, stream:
                try:
                    await stream.send_all(await self._response(await _head(stream)))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
                except Exception:
                    logger.exception("A scrape of the metrics failed")

    async def _response(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1"):
            return _message(400, "Bad Request", b"")
        if words[0] not in (b"GET", b"HEAD"):
            return _message(405, "Method Not Allowed", b"")
        if words[1].split(b"?", 1)[0] not in (b"/metrics", b"/"):
            return _message(404, "Not Found", b"see /metrics\n")
        body = await self._render()
        return _message(200, "OK", body, with_body=words[0] == b"GET")


class _Started:
    """Tells the server that the listener is up, without its internals."""

    def __init__(self, task_status: trio.TaskStatus[None]) -> None:
        self._task_status = task_status

    def started(self, _: object = None) -> None:
        """Called by trio."""
        self._task_status.started()


async def _head(stream: trio.SocketStream) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received and len(received) < _REQUEST_BYTES:
        piece = await stream.receive_some(_REQUEST_BYTES)
        if not piece:
            break
        received += piece
    return received


def _message(code: int, reason: str, body: bytes, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
