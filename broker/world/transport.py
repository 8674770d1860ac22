"""The network as connections see it: byte streams that never block, and who hands them out.

    sockets.py            the operating system's
    memory_transport.py   pipes in this process, for a broker without sockets
    streams.py            what everyone does with a stream: accept, receive, send all of it

A stream is used as a non-blocking socket is: try, and wait only when there is nothing to be done
(`BlockingIOError`). So the hot loop of a connection costs no more than the system calls. A stream
may stand on another one, as TLS does: it has its own idea of what is readable, and if it cannot
send files it says so.
"""

from dataclasses import dataclass
from typing import Final, Protocol

from config.listener import Listener

SYSTEM_DEFAULT = -1
"""`socket.send.buffer.bytes` and its twin: leave the size to the transport."""

Piece = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener and where it really listens."""

    name: str
    host: str
    """As configured; 0.0.0.0 for every interface."""
    port: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class BindError(Exception):
    """A listener's address cannot be used; the message is for the operator."""

    def __init__(
        self, message: str, *, errno: int | None = None, for_metrics: bool = False
    ) -> None:
        """`errno` is the system's; None where the host has no address."""
        super().__init__(message)
        self.errno: Final = errno
        self.for_metrics: Final = for_metrics


@dataclass(frozen=True, slots=True)
class Address:
    """One end of a stream; an IPv4 peer of an IPv6 socket reads as IPv4."""

    host: str
    port: int


class Stream(Protocol):
    """A connected byte stream.

    Whatever fails because the peer went away raises OSError, as does the use of a closed stream.
    `recv_into` and `send` are what a request costs: an implementation may have them as attributes
    bound to C methods, and users bind them once.
    """

    @property
    def sends_files(self) -> bool:
        """Whether `send_file` may be called. Never changes."""
        ...

    @property
    def local(self) -> Address:
        """This end."""
        ...

    @property
    def peer(self) -> Address:
        """The other end."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Fill the buffer (not an empty one) with what has arrived; how many bytes.

        0: the peer sends no more. Raises BlockingIOError when nothing has arrived.
        """
        ...

    def send(self, data: Piece, /) -> int:
        """Take some of the bytes; how many. Raises BlockingIOError when none can be taken now."""
        ...

    def send_part(self, data: Piece, /) -> int:
        """As `send`, when more follows at once: it need not leave yet."""
        ...

    def send_file(self, descriptor: int, position: int, size: int, /) -> int:
        """As `send`, from an open file; 0 when the file ends at or before `position`.

        Waits for the disk unless the bytes are cached (`storage.filesystem.File.is_cached`).
        """
        ...

    async def wait_readable(self) -> None:
        """Returns when `recv_into` would not raise BlockingIOError. One task at a time."""
        ...

    async def wait_writable(self) -> None:
        """Returns when `send` would not raise BlockingIOError. One task at a time."""
        ...

    def has_ended(self) -> bool:
        """True when the next `recv_into` returns 0; False when bytes wait to be read.

        Takes nothing. Raises BlockingIOError when neither is the case.
        """
        ...

    def peer_has_closed(self) -> bool:
        """The peer will send no more, even if bytes of it are still unread. Never raises."""
        ...

    def close(self) -> None:
        """Let go of it; safe to call twice. Not while a task waits for it.

        What was sent reaches the peer, unless bytes of the peer are unread: that is a reset, as
        the peer could not know otherwise that they were in vain.
        """
        ...


class Listening(Protocol):
    """A port that was taken; clients queue up until `accept` is called."""

    @property
    def bound(self) -> BoundListener:
        """Where."""
        ...

    @property
    def is_open(self) -> bool:
        """Not closed yet."""
        ...

    def accept(self) -> Stream:
        """The next client. Raises BlockingIOError when none waits, else OSError.

        An error of `errno` EMFILE, ENFILE, ENOMEM or ENOBUFS passes; one of ECONNABORTED, EPROTO,
        EPERM or ENETDOWN is of a client that went away.
        """
        ...

    async def wait_acceptable(self) -> None:
        """Returns when `accept` would not raise BlockingIOError, or it was closed.

        One task at a time.
        """
        ...

    def close(self) -> None:
        """Give the port back, at any time; safe to call twice. Clients that wait are reset."""
        ...


class Transport(Protocol):
    """Where ports are taken."""

    def listen(
        self, listener: Listener, *, backlog: int, send_buffer: int, receive_buffer: int
    ) -> Listening:
        """Take a port; port 0 is any free one. Buffer sizes are of accepted streams, in bytes.

        Raises BindError with the reason; the caller knows for whom the address was.
        """
        ...
