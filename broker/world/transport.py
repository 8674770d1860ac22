"""The network as connections see it: byte streams that never block, and who hands them out.

    sockets.py            the operating system's
    memory_transport.py   pipes in this process, for a broker without sockets

A stream is used as a non-blocking socket is: try, and wait only when there is nothing to be done
(`BlockingIOError`). So the hot loop of a connection costs no more than the system calls, and TLS
can be a stream over a stream.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class Address:
    """One end of a stream; an IPv4 peer of an IPv6 socket reads as IPv4."""

    host: str
    port: int


class Stream(Protocol):
    """A connected byte stream. Whatever fails because the peer went away raises OSError."""

    recv_into: Callable[[memoryview], int]
    """Fill the buffer with what has arrived; how many bytes. 0: the peer sends no more. Raises
    BlockingIOError when nothing has arrived."""
    send: Callable[[Piece], int]
    """Take some of the bytes; how many. Raises BlockingIOError when none can be taken now."""
    sends_files: bool
    """Whether `send_file` may be called."""

    @property
    def local(self) -> Address:
        """This end."""
        ...

    @property
    def peer(self) -> Address:
        """The other end."""
        ...

    def send_part(self, data: Piece, /) -> int:
        """As `send`, when more follows at once: it need not leave yet."""
        ...

    def send_file(self, descriptor: int, position: int, size: int, /) -> int:
        """As `send`, from an open file; 0 when the file ends before `position`."""
        ...

    async def wait_readable(self) -> None:
        """Returns when `recv_into` would not raise BlockingIOError. One task at a time."""
        ...

    async def wait_writable(self) -> None:
        """Returns when `send` would take something."""
        ...

    def has_ended(self) -> bool:
        """True when the next `recv_into` returns 0; False when bytes wait to be read.

        Raises BlockingIOError when neither. Takes nothing.
        """
        ...

    def peer_has_closed(self) -> bool:
        """The peer will send no more, even if bytes of it are still unread."""
        ...

    def close(self) -> None:
        """Let go of it; safe to call twice. Not while a task waits for it."""
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
        """Returns when `accept` would not raise BlockingIOError, or it was closed."""
        ...

    def close(self) -> None:
        """Give the port back; safe to call twice."""
        ...


class Transport(Protocol):
    """Where ports are taken."""

    def listen(
        self, listener: Listener, *, backlog: int, send_buffer: int, receive_buffer: int
    ) -> Listening:
        """Take a port; port 0 is any free one. Buffer sizes are of accepted streams, in bytes.

        Raises BindError.
        """
        ...
