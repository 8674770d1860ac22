"""TLS as a `Stream` around another one. The connections above it notice nothing.

`ssl.SSLObject` does no input or output: bytes of the stream below go into one `MemoryBIO` and come
out of another. So TLS runs on every transport, and the handshake's dear steps may run in a thread.

Decided by measurements (half a gigabyte on loopback, CPU of the receiver and the sender):

* `FED_BYTES` are taken from below at once, and as many are encrypted before they are sent: half of
  that costs a tenth more CPU, twice that saves little. OpenSSL never gives the memory of a
  `MemoryBIO` back, so this is also what a connection keeps, twice, once it has been busy.
* One receive decrypts all records that were fed into the receiver's own buffer, and asks for
  another one only if something is left: an exception for "no more" costs as much as a record.
* A reply is encrypted as a whole and leaves in one send.

Traps:

* Plain bytes may wait in here while nothing waits below. Then `tells_again` is False, and a caller
  must receive before it waits.
* Bytes that arrive below may give the receiver none, because they are half a record or a new key.
  One receive feeds once: then it has bytes or raises BlockingIOError, so no peer can keep it busy.
* The bytes that `send` has counted are with the stream below, whole: no call has to follow for
  them. A record that went only in part is not counted; a caller that got a BlockingIOError sends
  the same bytes again.
* An end without TLS' own (`close_notify`) was cut, by the peer or by somebody between: a reset.

A receive or a send continues an unfinished handshake; the broker's connections finish theirs before
(`broker.network.handshakes`), by `feed`, `advance` and `flush`.
"""

import contextlib
import errno
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, NoReturn, cast

import trio

from broker.world.readiness import HANGUP, IN, OUT, READABLE, WRITABLE, Ready
from broker.world.transport import Stream
from storage.filesystem import Piece

FED_BYTES: Final = 64 * 1024
_READABLE_OR_WRITABLE: Final = Ready(IN | OUT | HANGUP)
"""TLS has bytes to send before it can receive."""
_HANDSHAKE: Final = 0x16
_CHANGE_CIPHER_SPEC: Final = 0x14
_APPLICATION_DATA: Final = 0x17
"""Kinds of records: their first bytes."""
_SHORT_FLIGHT: Final = 160
"""Bytes of records that hold no certificate: the end of a client's handshake in TLS 1.3."""


class NoTls(ConnectionAbortedError):
    """The first bytes of a client are not those of TLS."""

    def __init__(self, first: bytes) -> None:
        super().__init__(errno.ECONNABORTED, "it does not speak TLS")
        self.first: Final = first


class TlsFailure(NamedTuple):
    """Why a handshake failed."""

    reason: str
    """OpenSSL's word for it, such as NO_SHARED_CIPHER."""
    certificate: str
    """The fault of the peer's certificate; empty if that is not the reason."""


def scratch_memory() -> memoryview:
    """Return memory that streams of one event loop share while they receive."""
    return memoryview(bytearray(FED_BYTES))


class TlsStream:
    """One end; see `broker.world.transport.Stream`. Owns the stream `below`."""

    __slots__ = (
        "_below_receive",
        "_below_send",
        "_closed",
        "_context",
        "_ended",
        "_failure",
        "_incoming",
        "_inside",
        "_leaving",
        "_outgoing",
        "_read",
        "_scratch",
        "_server_name",
        "_tls",
        "_uncounted",
        "_write",
        "below",
        "fed",
        "is_shaken",
        "local",
        "peer",
    )

    sends_files = False

    def __init__(
        self,
        below: Stream,
        context: ssl.SSLContext,
        scratch: memoryview,
        *,
        server_name: str | None = None,
    ) -> None:
        """`server_name`: this is a client's end, and the server's certificate must be for it."""
        self.below = below
        self.local = below.local
        self.peer = below.peer
        self._below_receive = below.recv_into
        self._below_send = below.send
        self._scratch = scratch
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._context = context
        self._server_name = server_name
        self._tls: ssl.SSLObject | None = None
        self._read: Callable[[int, memoryview], int]
        self._write: Callable[[Piece], int]
        """Set with `is_shaken`, as is `_read`."""
        self.is_shaken = False
        """Whether the handshake is done."""
        self.fed = 0
        """Bytes that the handshake took from below."""
        self._inside = False
        """Whether plain bytes may be left in `tls`: the last receive filled its buffer."""
        self._leaving = memoryview(b"")
        """Encrypted bytes that the stream below has not taken yet."""
        self._uncounted = 0
        """Plain bytes of `send` that are in `_leaving`."""
        self._ended = self._closed = False
        self._failure: tuple[int, str] | None = None
        """Why nothing more can be received or sent: `errno` and text. Not the error itself, whose
        frames would keep this stream."""

    @property
    def source(self) -> Any:
        """See `Stream`."""
        return self.below.source

    @property
    def tells_again(self) -> bool:
        """See `Stream`."""
        return not (self._has_bytes() or self._ended or self._failure is not None)

    @property
    def readable(self) -> Ready:
        """See `Stream`."""
        return _READABLE_OR_WRITABLE if self._leaving else READABLE

    @property
    def writable(self) -> Ready:
        """See `Stream`."""
        return WRITABLE if self.is_shaken or self._leaving else READABLE

    # ---- the handshake

    @property
    def tls(self) -> ssl.SSLObject:
        """This end's TLS. It is made when it is first needed, because it takes some twenty
        kilobytes, and thousands of connections may wait for their handshake."""
        if self._tls is None:
            self._tls = self._context.wrap_bio(
                self._incoming,
                self._outgoing,
                server_side=self._server_name is None,
                server_hostname=self._server_name,
            )
        return self._tls

    def feed(self) -> int:
        """Take the peer's bytes from below; return how many, 0 if it sends no more.

        Raises NoTls, BlockingIOError if nothing has arrived, and OSError.
        """
        scratch = self._scratch
        size = self._below_receive(scratch)
        if not size:
            return 0
        if not self.fed and scratch[0] != _HANDSHAKE:
            raise NoTls(bytes(scratch[: min(size, 8)]))
        self.fed += size
        self._incoming.write(scratch[:size])
        return size

    def advance(self) -> "bool | TlsFailure":
        """Continue the handshake as far as the bytes that were fed allow.

        It computes for milliseconds, without Python's lock: call it in a thread, unless
        `is_cheap`. Returns whether it is done, or why it failed: an error that leaves a thread is a
        value, because its frames would keep the stream. Call `flush` then to send TLS' bytes.
        """
        tls = self.tls
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            return TlsFailure(error.reason or str(error), getattr(error, "verify_message", ""))
        self._read = cast("Callable[[int, memoryview], int]", tls.read)
        self._write = tls.write
        self.is_shaken = True
        return True

    def is_cheap(self, size: int) -> bool:
        """Whether `advance` is cheap after the last `feed`: the end of a handshake of TLS 1.3
        without a certificate, `size` bytes that need neither a signature nor a key.
        """
        scratch = self._scratch
        at = 6 if scratch[0] == _CHANGE_CIPHER_SPEC else 0
        return at < size <= _SHORT_FLIGHT and scratch[at] == _APPLICATION_DATA

    def flush(self) -> bool:
        """Send TLS' own bytes; return whether the stream below took all. Raises OSError."""
        while True:
            if not self._leaving:
                if not self._outgoing.pending:
                    return True
                self._leaving = memoryview(self._outgoing.read())
            try:
                sent = self._below_send(self._leaving)
            except BlockingIOError:
                return False
            self._leaving = self._leaving[sent:]

    def _go_on(self) -> None:
        """Shake hands here and now. Raises BlockingIOError if the peer must send bytes first."""
        self._check()
        while True:
            done = self.advance()
            if isinstance(done, TlsFailure):
                self._fail(errno.EPROTO, " ".join(done))
            if not self.flush() and not done:
                raise BlockingIOError(errno.EAGAIN, "the handshake waits to be sent")
            if done:
                return
            if not self.feed():
                self._fail(errno.ECONNRESET, "no handshake")

    # ---- receiving

    def recv_into(self, buffer: memoryview, /) -> int:  # noqa: C901, PLR0912 - a call would cost more
        """See `Stream`."""
        if not self.is_shaken:
            self._go_on()
        elif self._failure is not None or self._closed:
            self._check()
        if self._leaving:
            self.flush()
        incoming, read = self._incoming, self._read
        have, room, fed = 0, len(buffer), 0
        while True:
            if self._inside or incoming.pending:
                try:
                    size = read(room - have, buffer[have:] if have else buffer)
                except ssl.SSLWantReadError:
                    size = -1
                except ssl.SSLZeroReturnError:  # instead of 0, if `send_end` was called before
                    size = 0
                except ssl.SSLError as error:
                    self._note_failure(errno.EPROTO, str(error))
                    if have:
                        return have
                    raise OSError(errno.EPROTO, str(error)) from None
                self._inside = False
                if self._outgoing.pending:  # a new key, or a refusal to negotiate again
                    self.flush()
                if size > 0:
                    have += size
                    if have == room:
                        self._inside = True
                        return have
                    continue
                if not size:
                    self._ended = True
            if self._ended or (have and fed != FED_BYTES):
                return have
            if fed and not have:
                raise BlockingIOError(errno.EAGAIN, "no whole record has arrived")
            try:
                fed = self._below_receive(self._scratch)
            except BlockingIOError:
                if have:
                    return have
                raise
            if not fed:
                if have:
                    return have
                self._fail(errno.ECONNRESET, "no close_notify")
            incoming.write(self._scratch[:fed])

    async def wait_readable(self) -> None:
        """See `Stream`; `recv_into` may still raise BlockingIOError."""
        await trio.lowlevel.checkpoint()
        if not self.tells_again:
            return
        if self._leaving:
            await _first_of(self.below.wait_readable, self.below.wait_writable)
        else:
            await self.below.wait_readable()

    # ---- sending

    def send(self, data: Piece, /) -> int:
        """See `Stream`; after a BlockingIOError it must be given the same bytes."""
        if not self.is_shaken:
            self._go_on()
        elif self._failure is not None or self._closed:
            self._check()
        if self._leaving and not self.flush():
            raise BlockingIOError(errno.EAGAIN, "nothing can be sent")
        sent, self._uncounted = self._uncounted, 0
        size = len(data)
        view = memoryview(data)
        while sent < size:
            count = self._write(view[sent : sent + FED_BYTES] if size > FED_BYTES or sent else view)
            encrypted = self._outgoing.read()
            try:
                taken = self._below_send(encrypted)
            except BlockingIOError:
                taken = 0
            if taken != len(encrypted):
                self._leaving, self._uncounted = memoryview(encrypted)[taken:], count
                break
            sent += count
        if not sent and size:
            raise BlockingIOError(errno.EAGAIN, "nothing can be sent")
        return sent

    send_part = send

    def send_file(self, descriptor: int, position: int, size: int, /) -> NoReturn:
        """Not supported: `sends_files` is False. Raises NotImplementedError."""
        raise NotImplementedError

    async def wait_writable(self) -> None:
        """See `Stream`; `send` may still raise BlockingIOError."""
        await trio.lowlevel.checkpoint()
        if self.is_shaken or self._leaving:
            await self.below.wait_writable()
        else:
            await self.below.wait_readable()

    # ---- the end

    def send_end(self) -> None:
        """Tell the peer that nothing more is sent (`close_notify`); receiving continues."""
        if not self.is_shaken or self._failure is not None:
            return
        with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's
            self.tls.unwrap()
        with contextlib.suppress(OSError):
            self.flush()

    def close(self) -> None:
        """See `Stream`. A peer whose bytes are unread gets no `close_notify`."""
        if self._closed:
            return
        if not self._has_bytes() and not self._uncounted and not self._has_unread():
            self.send_end()
        self._closed = True
        self.below.close()

    def _has_bytes(self) -> bool:
        """Whether bytes of the peer, or the end of its stream, may be left in here."""
        return self._inside or self._incoming.pending > 0

    def _has_unread(self) -> bool:
        """Whether bytes of the peer have arrived that nobody received."""
        if not self.is_shaken or self._ended or self._failure is not None:
            return False
        try:
            return self.recv_into(memoryview(bytearray(1))) > 0
        except OSError:  # BlockingIOError as well
            return False

    def _note_failure(self, number: int, text: str) -> None:
        """Remember a failure, and send the peer the alert if TLS has one."""
        self._failure = number, text
        with contextlib.suppress(OSError):
            self.flush()

    def _fail(self, number: int, text: str) -> NoReturn:
        self._note_failure(number, text)
        raise OSError(number, text)

    def _check(self) -> None:
        """Raise OSError if it failed or is closed."""
        if self._closed:
            raise OSError(errno.EBADF, "the stream is closed")
        if self._failure is not None:
            raise OSError(*self._failure)


async def _first_of(*waits: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:

        async def wait(one: Callable[[], Awaitable[None]]) -> None:
            await one()
            nursery.cancel_scope.cancel()

        for one in waits:
            nursery.start_soon(wait, one)
