"""The network as connections see it: byte streams that never block, and ports that accept them.

    sockets.py    the operating system's; tests have pipes in their process
    streams.py    what every user of a stream needs: accept, receive, send all

A stream is used like a non-blocking socket: try, and wait only after a `BlockingIOError`. So the
hot loop of a connection costs no more than the system calls. A stream may wrap another one, as TLS
does; `sends_files` is False if it cannot send files.

A task that has a stream alone waits for it (`wait_readable`); a loop over many streams polls the
transport's `Readiness`, and their work awaits `readable` and `writable`.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from broker.world.readiness import Readiness, Ready
from config.listener import Listener
from storage.filesystem import Piece

SYSTEM_DEFAULT = -1
"""`socket.send.buffer.bytes` or `socket.receive.buffer.bytes`: the transport chooses the size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener with the port that it is bound to."""

    name: str
    host: str
    """The configured host; 0.0.0.0 for every interface."""
    address: str
    """The address that the host stands for: the one that is bound."""
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
        """`errno` is the system's; None if the host has no address."""
        super().__init__(message)
        self.errno: Final = errno
        self.for_metrics: Final = for_metrics


@dataclass(frozen=True, slots=True)
class Address:
    """One end of a stream; an IPv4 peer of an IPv6 socket is shown as IPv4."""

    host: str
    port: int


class Stream(Protocol):
    """A connected byte stream.

    Methods raise OSError when the peer has gone or the stream is closed. `recv_into` and `send` are
    the cost of a request: an implementation may have them as attributes bound to C methods, and
    users bind them once.
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

    @property
    def source(self) -> Any:
        """The key of the stream in the transport's `Readiness`."""
        ...

    @property
    def tells_again(self) -> bool:
        """Whether the readiness reports whatever is left now: bytes, or the end of the stream.

        If not, receive until `BlockingIOError` before you wait.
        """
        ...

    @property
    def readable(self) -> Ready:
        """Await it after `recv_into` has raised BlockingIOError; the next call may raise it too."""
        ...

    @property
    def writable(self) -> Ready:
        """Await it after `send` has raised BlockingIOError; the next call may raise it too."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Put what has arrived into the buffer, which must not be empty; return how many bytes.

        0 means that the peer sends no more. Raises BlockingIOError when nothing has arrived.
        """
        ...

    def send(self, data: Piece, /) -> int:
        """Send some of the bytes; return how many. Raises BlockingIOError if none can be sent.

        After BlockingIOError the next call must offer the same bytes first: a stream that encrypts
        may have sent a part of the record that they are in.
        """
        ...

    def send_part(self, data: Piece, /) -> int:
        """As `send`, when more follows at once: the bytes may wait for it."""
        ...

    def send_file(self, descriptor: int, position: int, size: int, /) -> int:
        """As `send`, from an open file; return 0 if the file ends at or before `position`.

        Blocks on the disk unless the bytes are cached (`storage.filesystem.File.is_cached`).
        """
        ...

    async def wait_readable(self) -> None:
        """Return when `recv_into` would not raise BlockingIOError; on an encrypted stream it still
        may. One task at a time."""
        ...

    async def wait_writable(self) -> None:
        """Return when `send` would not raise BlockingIOError; on an encrypted stream it still may.
        One task at a time."""
        ...

    def close(self) -> None:
        """Close it; safe to call twice. No task may be waiting for it.

        Bytes that were sent still reach the peer. But if bytes of the peer are unread, the stream
        is reset, so that the peer learns that they were not read.
        """
        ...


class Listening(Protocol):
    """A port that is listened on; clients queue up until `accept` is called."""

    @property
    def bound(self) -> BoundListener:
        """The listener with its address."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it is not closed yet."""
        ...

    def accept(self) -> Stream:
        """Return the next client's stream. Raises BlockingIOError if none waits, else OSError.

        `errno` EMFILE, ENFILE, ENOMEM or ENOBUFS is a shortage that passes; ECONNABORTED, EPROTO,
        EPERM or ENETDOWN means that the client went away.
        """
        ...

    async def wait_acceptable(self) -> None:
        """Return when `accept` would not raise BlockingIOError, or `close` was called.

        One task at a time.
        """
        ...

    def close(self) -> None:
        """Give the port back and reset clients that wait; at any time, and safe to call twice."""
        ...


class Transport(Protocol):
    """Opens ports, and connects to those of others."""

    def readiness(self) -> Readiness:
        """Make what tells of this transport's streams."""
        ...

    def listen(
        self, listener: Listener, *, backlog: int, send_buffer: int, receive_buffer: int
    ) -> Listening:
        """Listen on a port; port 0 means any free one. The sizes are accepted streams', in bytes.

        Raises BindError with the reason; the caller adds what the address was for.
        """
        ...

    def resolve(self, host: str) -> str:
        """Return the first address of a host, IPv4 before IPv6, as Java's `getByName` does.

        It may ask a name server: not for the event loop. Raises OSError with the reason.
        """
        ...

    async def dial(self, host: str, port: int, *, send_buffer: int, receive_buffer: int) -> Stream:
        """Connect to somebody's port. The sizes are the stream's, in bytes.

        A name is resolved; its addresses are tried one after the other. Waits as long as the
        system does: the caller bounds it by cancelling. Raises OSError with the reason.
        """
        ...
