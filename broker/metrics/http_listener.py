"""`GET /metrics` over HTTP/1.1: the part of HTTP that a scrape needs.

A connection serves one request. Its head must arrive within `_HEAD_S`, and the reply must be sent
within `_REQUEST_S` of the connection's start. Clients that send or read slowly, or nothing, do not
keep others from scraping:

* There are at most `CONNECTIONS`, or `most`. For one more, the address that has most of them
  pays: the oldest of its connections whose request has not arrived is closed, or else its oldest.
* Requests that wait at the same time get one text, made once; no request gets a text that was begun
  before it came. At most `_TEXTS` texts are in memory: for one more, those who still read the
  oldest are closed when it is `_TAKE_S` old. While there are fewer no reader delays another.

`metrics.http.listener` is "host:port"; without a host it listens on every interface, as `listeners`
does; if it is empty, nothing listens.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import trio

from broker.world.clock import TaskClock
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
CONNECTIONS = 256
_TEXTS = 8
_TAKE_S = 1.0
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


class _Text:
    """The text of one rendering, and the scrapes that read it."""

    def __init__(self, number: int, pieces: list[bytes], made: float) -> None:
        self.number = number
        self.pieces = pieces
        self.made = made
        self.readers: dict[_Scrape, None] = {}


class _Scrape:
    """One connection."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.scope = trio.CancelScope()
        """Cancelled to close it."""
        self.is_silent = True
        """Whether its request has not arrived."""


class MetricsListener:
    """Serves what `render` returns."""

    def __init__(
        self,
        address: tuple[str, int],
        render: Render,
        transport: Transport,
        clock: TaskClock,
        *,
        most: int = CONNECTIONS,
    ) -> None:
        self._most = most
        host, port = address
        self._listener = Listener(name="METRICS", host=host, port=port, protocol="HTTP")
        self._render = render
        self._transport = transport
        self._clock = clock
        self._rendering = trio.Lock()
        self._begun = 0
        """Renderings so far."""
        self._latest = _Text(0, [], 0.0)
        self._texts: list[_Text] = []
        """Those that may still be read, the oldest first."""
        self._open: dict[_Scrape, None] = {}
        """The oldest first."""
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
        if len(self._open) >= self._most:
            payer = self._payer()
            del self._open[payer]
            payer.scope.cancel()
        scrape = _Scrape(stream.peer.host)
        self._open[scrape] = None
        nursery.start_soon(self._answer, stream, scrape)

    def _payer(self) -> _Scrape:
        (host, _), *_ = Counter(scrape.host for scrape in self._open).most_common(1)
        of_it = [scrape for scrape in self._open if scrape.host == host]
        return next((scrape for scrape in of_it if scrape.is_silent), of_it[0])

    async def _answer(self, stream: Stream, scrape: _Scrape) -> None:
        try:
            with scrape.scope, self._clock.timeout(_REQUEST_S):
                head = None
                with self._clock.timeout(_HEAD_S):
                    head = await _head(stream)
                scrape.is_silent = False
                if head is not None:
                    await self._send_response(stream, head, scrape)
        except OSError:  # the scraper has gone
            pass
        finally:
            self._open.pop(scrape, None)
            stream.close()

    async def _send_response(self, stream: Stream, head: bytes, scrape: _Scrape) -> None:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        refusal = _refusal(words)
        if refusal is not None:
            await _send(stream, refusal)
            return
        try:
            text = await self._text()
        except Exception:
            logger.exception("A scrape of the metrics failed")
            return
        text.readers[scrape] = None
        try:
            await _send(stream, _message(200, "OK", text.pieces, with_body=words[0] == b"GET"))
        finally:
            del text.readers[scrape]

    async def _text(self) -> _Text:
        """A text whose rendering begins now, or began while this waited for another."""
        begun = self._begun
        async with self._rendering:
            if self._latest.number <= begun:
                await self._make_room()
                self._begun += 1
                pieces = await self._render()
                self._latest = _Text(self._begun, pieces, self._clock.monotonic())
                self._texts.append(self._latest)
            return self._latest

    async def _make_room(self) -> None:
        self._texts = [text for text in self._texts if text.readers]
        if len(self._texts) >= _TEXTS:
            oldest = self._texts.pop(0)
            await self._clock.sleep_until(oldest.made + _TAKE_S)
            for reader in oldest.readers:
                reader.scope.cancel()


async def _send(stream: Stream, pieces: list[bytes]) -> None:
    for piece in pieces:
        await send_all(stream, piece)


def _refusal(words: list[bytes]) -> list[bytes] | None:
    """The answer to a request that is no scrape; None for a scrape."""
    if len(words) != 3 or not words[2].startswith(b"HTTP/1"):
        return _message(400, "Bad Request", [])
    if words[0] not in (b"GET", b"HEAD"):
        return _message(405, "Method Not Allowed", [])
    if words[1].split(b"?", 1)[0] not in (b"/metrics", b"/"):
        return _message(404, "Not Found", [b"see /metrics\n"])
    return None


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
