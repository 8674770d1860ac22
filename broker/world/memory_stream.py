"""A connection in this process: two pipes, and a stream at either end of them.

Both ends are the same class. What they show is TCP's (`broker.world.memory_transport` says where
it is not); how many bytes are under way is bounded, so a slow reader makes its peer wait.
"""

import errno
from typing import Final, NoReturn, Protocol

import trio

from broker.world.transport import Address, Piece

_RESET: Final = "Connection reset by peer"


class Member(Protocol):
    """What a process has of the network: a stream or a port."""

    def wake(self) -> None:
        """Who waits for it looks again."""
        ...

    def abort(self) -> None:
        """Reset whoever is at the other end, and let go of it."""
        ...


class Process:
    """Who has streams and ports; pausing or killing it stops all of them at once."""

    def __init__(self) -> None:
        self.frozen = False
        """It runs no more, for a while or for ever: nothing is readable, writable or acceptable,
        so its tasks stay where they wait."""
        self.killed = False
        self._members: dict[Member, None] = {}  # in the order in which they came

    def adopt(self, member: Member) -> None:
        """One more."""
        self._members[member] = None

    def forget(self, member: Member) -> None:
        """One less."""
        del self._members[member]

    def freeze(self) -> None:
        """Stop."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on; has no effect on the dead."""
        if not self.killed:
            self.frozen = False
            for member in self._members:
                member.wake()

    def kill(self) -> None:
        """Stop for ever, and have all it had reset."""
        self.frozen = self.killed = True
        for member in list(self._members):
            member.abort()


class Pipe:
    """One direction of a connection."""

    __slots__ = ("abandoned", "capacity", "content", "ended", "not_empty", "not_full", "reset")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.content = bytearray()
        """Sent and not received yet."""
        self.ended = False
        """The sender sends no more."""
        self.abandoned = False
        """The receiver receives no more."""
        self.reset = False
        """Neither end has the other any more."""
        self.not_empty = trio.lowlevel.ParkingLot()
        """Where the receiver waits for bytes, an end or a reset."""
        self.not_full = trio.lowlevel.ParkingLot()
        """Where the sender waits for room, or to learn that it waits in vain."""

    def wake(self) -> None:
        """Both look again."""
        self.not_empty.unpark_all()
        self.not_full.unpark_all()


class MemoryStream:
    """One end; see `broker.world.transport.Stream`."""

    __slots__ = ("_closed", "_incoming", "_outgoing", "_process", "local", "peer")

    sends_files = False

    def __init__(
        self, process: Process, *, incoming: Pipe, outgoing: Pipe, local: Address, peer: Address
    ) -> None:
        self.local = local
        self.peer = peer
        self._process = process
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False
        process.adopt(self)

    def __repr__(self) -> str:
        return (
            f"MemoryStream({self.local.host}:{self.local.port}, {self.peer.host}:{self.peer.port})"
        )

    # ---- receiving

    def recv_into(self, buffer: memoryview, /) -> int:
        """See `Stream`."""
        if self.has_ended():
            return 0
        incoming = self._incoming
        size = min(len(buffer), len(incoming.content))
        buffer[:size] = incoming.content[:size]
        del incoming.content[:size]
        incoming.not_full.unpark_all()
        return size

    def has_ended(self) -> bool:
        """See `Stream`."""
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
        """See `Stream`."""
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
        outgoing.not_empty.unpark_all()
        return size

    send_part = send

    def send_file(self, descriptor: int, position: int, size: int, /) -> NoReturn:
        """Not here: `sends_files` is False."""
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
        """Send no more, and go on receiving."""
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
        """End it with a reset, as the kernel does for a process that died; safe to call twice."""
        if not self._closed:
            self._incoming.content.clear()
            self._incoming.reset = True
            self._outgoing.reset = True
            self._let_go()

    def wake(self) -> None:
        """Who waits for this end looks again."""
        self._incoming.not_empty.unpark_all()
        self._outgoing.not_full.unpark_all()

    def _let_go(self) -> None:
        self._closed = True
        self._process.forget(self)
        self._incoming.wake()
        self._outgoing.wake()

    def _check_running(self) -> None:
        # First: a dead process must not learn from its own closed streams that it is dead.
        if self._process.frozen:
            raise BlockingIOError(errno.EAGAIN, "the process is paused or dead")
        if self._closed:
            raise OSError(errno.EBADF, "the stream is closed")
