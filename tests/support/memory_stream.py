"""A connection in this process: two pipes, and a stream at either end of them.

Both ends are the same class and behave as TCP does (`tests.support.memory_transport` lists the
differences). A pipe holds a bounded number of bytes, so a slow reader makes its peer wait.
"""

import errno
from collections.abc import Callable
from typing import Final, NoReturn, Protocol

import trio

from broker.world.readiness import BROKEN, HANGUP, IN, OUT, READABLE, WRITABLE
from broker.world.transport import Address
from storage.filesystem import Piece

_RESET: Final = "Connection reset by peer"


class Owned(Protocol):
    """Something a process owns in the network: a stream or a port."""

    def wake(self) -> None:
        """Wake the tasks that wait for it, so that they look again."""
        ...

    def abort(self) -> None:
        """Close it and reset its peers."""
        ...


class Process:
    """The owner of streams and ports; pausing or killing it stops all of them at once."""

    def __init__(self) -> None:
        self.frozen = False
        """Paused or killed: nothing is readable, writable or acceptable, so its tasks wait on."""
        self.killed = False
        self._members: dict[Owned, None] = {}  # in the order of adoption

    def adopt(self, member: Owned) -> None:
        """Add a stream or port."""
        self._members[member] = None

    def forget(self, member: Owned) -> None:
        """Remove a stream or port."""
        del self._members[member]

    def freeze(self) -> None:
        """Pause until `thaw`."""
        self.frozen = True

    def thaw(self) -> None:
        """End a pause; has no effect after `kill`."""
        if not self.killed:
            self.frozen = False
            for member in self._members:
                member.wake()

    def kill(self) -> None:
        """Stop for ever, and reset all its streams and ports."""
        self.frozen = self.killed = True
        for member in list(self._members):
            member.abort()


class Pipe:
    """One direction of a connection."""

    __slots__ = (
        "abandoned",
        "capacity",
        "content",
        "ended",
        "not_empty",
        "not_full",
        "reader",
        "reset",
        "writer",
    )

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.reader: MemoryStream | None = None
        self.writer: MemoryStream | None = None
        self.content = bytearray()
        """Sent and not received yet."""
        self.ended = False
        """The sender has closed its end."""
        self.abandoned = False
        """The receiver has closed its end."""
        self.reset = False
        """The connection was reset, for both ends."""
        self.not_empty = trio.lowlevel.ParkingLot()
        """The receiver waits here for bytes, an end or a reset."""
        self.not_full = trio.lowlevel.ParkingLot()
        """The sender waits here for room, an end or a reset."""

    def wake(self) -> None:
        """Wake both sides, so that they look again."""
        self.wake_reader()
        self.wake_writer()

    def wake_reader(self) -> None:
        """Wake the receiver."""
        self.not_empty.unpark_all()
        if self.reader is not None:
            self.reader.changed()

    def wake_writer(self) -> None:
        """Wake the sender."""
        self.not_full.unpark_all()
        if self.writer is not None:
            self.writer.changed()


class MemoryStream:
    """One end of a connection; see `broker.world.transport.Stream`."""

    __slots__ = ("_closed", "_incoming", "_outgoing", "_process", "changed", "local", "peer")

    sends_files = False
    tells_again = True
    readable = READABLE
    writable = WRITABLE

    def __init__(
        self, process: Process, *, incoming: Pipe, outgoing: Pipe, local: Address, peer: Address
    ) -> None:
        self.local = local
        self.peer = peer
        self._process = process
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False
        self.changed: Callable[[], object] = lambda: None
        """Called when `events` may have changed."""
        incoming.reader = outgoing.writer = self
        process.adopt(self)

    def __repr__(self) -> str:
        return (
            f"MemoryStream({self.local.host}:{self.local.port}, {self.peer.host}:{self.peer.port})"
        )

    @property
    def source(self) -> "MemoryStream":
        """See `Stream`."""
        return self

    def events(self) -> int:
        """Return the events that epoll would report (`broker.world.readiness`)."""
        if self._process.frozen:
            return 0
        incoming = self._incoming
        events = IN * self._is_readable() | OUT * self._is_writable()
        if incoming.reset:
            return events | HANGUP
        return events | HANGUP & ~BROKEN if incoming.ended else events

    # ---- receiving

    def recv_into(self, buffer: memoryview, /) -> int:
        """See `Stream`."""
        if self.has_ended():
            return 0
        incoming = self._incoming
        size = min(len(buffer), len(incoming.content))
        buffer[:size] = incoming.content[:size]
        del incoming.content[:size]
        incoming.wake_writer()
        return size

    def has_ended(self) -> bool:
        """Whether the next `recv_into` returns 0. Takes no byte; raises as `recv_into` does."""
        self._check_running()
        incoming = self._incoming
        if incoming.content:
            return False
        if incoming.reset:
            raise ConnectionResetError(errno.ECONNRESET, _RESET)
        if not incoming.ended:
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        return True

    async def wait_readable(self) -> None:
        """See `Stream`."""
        if self._is_readable():
            await trio.lowlevel.checkpoint()
        while not self._is_readable():
            await self._incoming.not_empty.park()

    def _is_readable(self) -> bool:
        incoming = self._incoming
        return not self._process.frozen and (
            bool(incoming.content) or incoming.ended or incoming.reset or self._closed
        )

    def peer_has_closed(self) -> bool:
        """Whether the peer will send no more; bytes of it may still be unread."""
        incoming = self._incoming
        return not self._process.frozen and (incoming.ended or incoming.reset)

    # ---- sending

    def send(self, data: Piece, /) -> int:
        """See `Stream`."""
        self._check_running()
        outgoing = self._outgoing
        if outgoing.reset:
            raise ConnectionResetError(errno.ECONNRESET, _RESET)
        if outgoing.ended or outgoing.abandoned:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        view = memoryview(data)
        size = min(len(view), outgoing.capacity - len(outgoing.content))
        if size == 0 and len(view):
            raise BlockingIOError(errno.EAGAIN, "the buffer is full")
        outgoing.content += view[:size]
        outgoing.wake_reader()
        return size

    send_part = send

    def send_file(self, descriptor: int, position: int, size: int, /) -> NoReturn:
        """Not supported: `sends_files` is False. Raises NotImplementedError."""
        raise NotImplementedError

    async def wait_writable(self) -> None:
        """See `Stream`."""
        if self._is_writable():
            await trio.lowlevel.checkpoint()
        while not self._is_writable():
            await self._outgoing.not_full.park()

    def _is_writable(self) -> bool:
        outgoing = self._outgoing
        return not self._process.frozen and (
            len(outgoing.content) < outgoing.capacity
            or outgoing.ended
            or outgoing.reset
            or self._closed
        )

    # ---- the end

    def send_eof(self) -> None:
        """Close the sending side; receiving goes on."""
        self._outgoing.ended = True
        self._outgoing.wake()

    def close(self) -> None:
        """See `Stream`."""
        if self._incoming.content:
            self.abort()
        elif not self._closed:
            self._incoming.abandoned = True
            self._outgoing.ended = True
            self._let_go()

    def abort(self) -> None:
        """Close with a reset, as the kernel does for a process that died; safe to call twice."""
        if not self._closed:
            self._incoming.content.clear()
            self._incoming.reset = True
            self._outgoing.reset = True
            self._let_go()

    def wake(self) -> None:
        """Wake the tasks that wait for this end, so that they look again."""
        self._incoming.wake_reader()
        self._outgoing.wake_writer()

    def _let_go(self) -> None:
        self._closed = True
        self._process.forget(self)
        self._incoming.wake()
        self._outgoing.wake()

    def _check_running(self) -> None:
        # Checked first: a killed process must not notice its death by its closed streams.
        if self._process.frozen:
            raise BlockingIOError(errno.EAGAIN, "the process is paused or dead")
        if self._closed:
            raise OSError(errno.EBADF, "the stream is closed")
