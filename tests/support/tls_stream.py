"""TLS as one more `Stream`: it wraps another one, and the connections above it notice nothing.

`ssl.SSLObject` does no input or output: bytes of the stream below go into one `MemoryBIO` and come
out of another. What there is to be careful about:

* One record of the stream below may be more than a receiver takes, so plain bytes may wait in here
  while nothing waits below: whoever waits, looks here first.
* What arrives below may be no bytes for the receiver, but a handshake or half a record: who waits
  for bytes waits until there are some.
* What `send` has counted is with the stream below, whole: nobody has to come back for it, and
  `close` loses nothing. A record that went only in part is not counted; as with OpenSSL, whoever
  got a BlockingIOError sends the same bytes again. `send_all` and `Replies` do.
* An end without TLS' own (`close_notify`) was cut, by the peer or by somebody between: a reset.
"""

import contextlib
import errno
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

import trio

from broker.world.readiness import HANGUP, IN, OUT, READABLE, WRITABLE, Ready
from broker.world.transport import Stream
from storage.filesystem import Piece

SERVER_NAME: Final = "broker"
"""In the certificate."""
_READABLE_OR_WRITABLE: Final = Ready(IN | OUT | HANGUP)
"""It has something to say before it can receive."""
_CUT: Final = "UNEXPECTED_EOF_WHILE_READING"
"""The reason of what is an SSLEOFError from Python 3.12 on."""
RECORD_BYTES: Final = 16 * 1024
"""The most plain bytes in a record."""


class TlsStream:
    """One end; see `broker.world.transport.Stream`. Owns the stream `below`."""

    sends_files = False
    tells_again = False

    def __init__(self, below: Stream, context: ssl.SSLContext, *, server_side: bool) -> None:
        self.below = below
        self.local = below.local
        self.peer = below.peer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_side,
            server_hostname=None if server_side else SERVER_NAME,
        )
        self._scratch = memoryview(bytearray(RECORD_BYTES))
        self._ahead = memoryview(b"")
        """Plain bytes that were decrypted by looking for them."""
        self._leaving = memoryview(b"")
        """Encrypted bytes that the stream below has not taken yet."""
        self._uncounted = 0
        """Plain bytes of `send` that are in `_leaving`."""
        self._ended = False
        self._failure: OSError | None = None
        self._closed = False

    @property
    def source(self) -> Any:
        """See `Stream`."""
        return self.below.source

    @property
    def readable(self) -> Ready:
        """See `Stream`."""
        return READABLE if self._flushed_or_failed() else _READABLE_OR_WRITABLE

    @property
    def writable(self) -> Ready:
        """See `Stream`."""
        return READABLE if self._flushed_or_failed() and not self._is_shaken() else WRITABLE

    # ---- receiving

    def recv_into(self, buffer: memoryview, /) -> int:
        """See `Stream`."""
        self._check_open()
        if not self._ahead:
            return self._decrypt(buffer)
        size = min(len(buffer), len(self._ahead))
        buffer[:size] = self._ahead[:size]
        self._ahead = self._ahead[size:]
        return size

    def has_ended(self) -> bool:
        """Whether the next `recv_into` returns 0. It may have to decrypt a record."""
        self._check_open()
        if not self._ahead:
            plain = bytearray(RECORD_BYTES)
            self._ahead = memoryview(plain)[: self._decrypt(memoryview(plain))]
        return not self._ahead

    async def wait_readable(self) -> None:
        """See `Stream`."""
        await trio.lowlevel.checkpoint()
        while not self._is_readable():
            if self._flushed_or_failed():
                await self.below.wait_readable()
            else:
                await _first_of(self.below.wait_readable, self.below.wait_writable)

    def _is_readable(self) -> bool:
        try:
            self.has_ended()
        except BlockingIOError:
            return False
        except OSError:
            pass  # receiving will raise it
        return True

    def _decrypt(self, buffer: memoryview) -> int:
        """As `recv_into`; goes on with the handshake if that is not over."""
        while True:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return 0
            try:
                size = self._tls.read(len(buffer), buffer)  # type: ignore[arg-type]
            except ssl.SSLWantReadError:
                self._flush()
                self._receive_below()
                continue
            except ssl.SSLZeroReturnError:  # instead of 0, when `send_end` was called before
                size = 0
            except ssl.SSLError as error:
                if isinstance(error, ssl.SSLEOFError) or error.reason == _CUT:
                    self._failure = ConnectionResetError(errno.ECONNRESET, "no close_notify")
                else:
                    self._failure = error
                self._flushed_or_failed()  # tells the peer what was wrong
                continue
            self._ended = not size
            return int(size)

    def _receive_below(self) -> None:
        size = self.below.recv_into(self._scratch)
        if size:
            self._incoming.write(self._scratch[:size])
        else:
            self._incoming.write_eof()

    # ---- sending

    def send(self, data: Piece, /) -> int:
        """See `Stream`; after a BlockingIOError it must be given the same bytes."""
        self._check_open()
        view = memoryview(data)
        sent = 0
        while True:
            if not self._flush():
                break
            sent += self._uncounted
            self._uncounted = 0
            if sent == len(view):
                return sent
            try:
                self._uncounted = self._tls.write(view[sent : sent + RECORD_BYTES])
            except ssl.SSLWantReadError:  # the handshake is not over
                if self._flush():
                    try:
                        self._receive_below()
                    except BlockingIOError:
                        break
        if not sent:
            raise BlockingIOError(errno.EAGAIN, "nothing can be sent")
        return sent

    send_part = send

    def send_file(self, descriptor: int, position: int, size: int, /) -> NoReturn:
        """Not supported: `sends_files` is False. Raises NotImplementedError."""
        raise NotImplementedError

    async def wait_writable(self) -> None:
        """See `Stream`."""
        await trio.lowlevel.checkpoint()
        while not self._is_shaken():
            wait = self.below.wait_readable if self._flushed_or_failed() else None
            await (wait or self.below.wait_writable)()
        await self.below.wait_writable()
        while not self._flushed_or_failed():
            await self.below.wait_writable()

    def _is_shaken(self) -> bool:
        """Whether the handshake is over, well or not; goes on with it."""
        while True:
            try:
                self._check_open()
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self._flushed_or_failed():
                    return False
            except OSError:
                return True  # sending will raise it
            else:
                return True
            try:
                self._receive_below()
            except BlockingIOError:
                return False
            except OSError:
                return True

    def _flush(self) -> bool:
        """Whether all that was encrypted is with the stream below."""
        while True:
            if not self._leaving:
                self._leaving = memoryview(self._outgoing.read())
                if not self._leaving:
                    return True
            try:
                sent = self.below.send(self._leaving)
            except BlockingIOError:
                return False
            self._leaving = self._leaving[sent:]

    def _flushed_or_failed(self) -> bool:
        try:
            return self._flush()
        except OSError:
            return True

    # ---- the end

    def send_end(self) -> None:
        """Say that nothing more is sent (`close_notify`); receiving goes on."""
        with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's
            self._tls.unwrap()
        self._flushed_or_failed()

    def close(self) -> None:
        """See `Stream`. To a peer whose bytes are unread it does not say that this is the end."""
        if self._closed:
            return
        try:
            unread = not self.has_ended()
        except OSError:  # BlockingIOError as well
            unread = False
        if not unread and not self._uncounted:
            self.send_end()
        self._closed = True
        self.below.close()

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the stream is closed")


async def _first_of(*waits: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:

        async def wait(one: Callable[[], Awaitable[None]]) -> None:
            await one()
            nursery.cancel_scope.cancel()

        for one in waits:
            nursery.start_soon(wait, one)
