"""The bytes that a connection has received and not handled yet: whole frames and an incomplete one.

The bytes lie at the start of one buffer of the pool. The connection takes the buffer before a
receive, and gives it back or exchanges it for a small one when nothing comes. An incomplete frame
moves to the front, of a larger buffer if it needs one (`broker.network.buffers` has the reasons and
sizes).
"""

from collections.abc import Callable
from typing import Final

from broker.fairness import NOBODY, Client
from broker.network.backlog import Backlog
from broker.network.buffers import GROWTH, STANDARD_BYTES, BufferPool, PoolBuffer
from broker.network.frame_memory import FrameHold, FrameMemory
from protocol.framing import SIZE_BYTES

_NO_BUFFER: Final[PoolBuffer] = bytearray()
_NOTHING: Final = memoryview(_NO_BUFFER)

FIRST_BYTES: Final = 8192
"""The first receive if memory is short: enough to see whether a frame is counted."""


def _nothing() -> None:
    pass


class ReceiveBuffer:
    """The receive buffer of one connection. The hot loop fills it through the fields, because a
    call would cost as much as the receive itself."""

    __slots__ = (
        "_client",
        "_frames",
        "_give_up",
        "_pool",
        "backlog",
        "buffer",
        "have",
        "hold",
        "kept",
        "view",
    )

    def __init__(
        self,
        pool: BufferPool,
        frames: FrameMemory,
        client: Client = NOBODY,
        give_up: Callable[[], object] = _nothing,
        backlog: Backlog | None = None,
    ) -> None:
        """`give_up` ends the connection, for others that wait for its memory."""
        self.backlog = backlog or Backlog()
        """The bytes that all connections keep while they cannot go on."""
        self.kept = 0
        """The bytes that this connection keeps in that state, of requests and of replies."""
        self._pool = pool
        self._frames = frames
        self._client = client
        self._give_up = give_up
        self.hold: FrameHold | None = None
        """The memory of the incomplete frame; None until there was one."""
        self.buffer = _NO_BUFFER
        """Empty while none is held."""
        self.view = _NOTHING
        """A view of the whole buffer."""
        self.have = 0
        """Bytes received, at the start of the buffer."""

    def acquire(self, wanted: int) -> None:
        """Take a buffer; a large one if a frame of `wanted` bytes is likely and one is free.

        If incomplete requests hold much memory, or connections keep much, take a small one, which
        is enough for the size of the next frame.
        """
        short = self._frames.held >= self._frames.limit // 2 or self.backlog.is_long
        self._use(bytearray(FIRST_BYTES) if short else self._pool.acquire(wanted))

    def pause(self) -> None:
        """The connection's turn is over: give the frame's window and lane back."""
        if self.hold is not None:
            self.hold.settle()

    def keep_rest(self, position: int, wanted: int, now: float) -> None:
        """Move the bytes after `position` to the front, of a larger buffer if need be.

        There must be some. `wanted` is the size of the frame that begins there, 0 if it is not
        known yet. Raises OSError if there is no memory for the frame.
        """
        rest = self.have - position
        self.have = rest
        hold = self.hold
        if hold is None:
            hold = self.hold = FrameHold(self._frames, self._client, self._give_up)
        elif position:
            hold.end()
        hold.note(wanted or SIZE_BYTES, rest, now)
        view = self.view
        if wanted > len(view):
            pool = self._pool
            larger = pool.free_large(wanted)
            if larger is None and rest == len(view):
                larger = pool.grown(wanted, rest)
            if larger is not None:
                old = self.buffer
                content = view[position : position + rest]
                self._use(larger)
                self.view[:rest] = content
                del content, view
                pool.release(old)
                return
        if position:
            view[:rest] = view[position : position + rest]

    def shrink_idle(self) -> None:
        """Give the buffer back while nothing comes; keep a fitting one for an incomplete frame."""
        pool = self._pool
        if self.have == 0:
            pool.release(self._detached())
            return
        self.pause()
        if pool.crowded and GROWTH * self.have < len(self.view) <= STANDARD_BYTES:
            pool.release(self._packed(0))

    def shrink_parked(self, position: int, unsent: int = 0) -> None:
        """The request before `position` is parked, or `unsent` bytes of replies wait for the
        client: keep the bytes after it, release the rest."""
        self._pool.release_parked(self._packed(position, 1))
        self.frame_is_done()
        kept = self.have + unsent
        if kept != self.kept:
            self.keep(kept)

    def shrink_interrupted(self, position: int) -> int:
        """The connection's turn ended before the bytes after `position` were handled; return where
        they begin now. While many connections hold a buffer, only those bytes are kept, if a buffer
        of half the size holds them."""
        rest = self.have - position
        crowded = self._pool.crowded or self.backlog.is_long
        if crowded and len(self.view) >= max(STANDARD_BYTES, 2 * rest):
            self._pool.release(self._packed(position, 1))
            position = 0
        self.keep(rest)
        return position

    def keep(self, size: int) -> None:
        """Note that the connection keeps `size` bytes while it cannot go on; 0 if it can again."""
        self.backlog.add(size - self.kept)
        self.kept = size

    def frame_is_done(self) -> None:
        """The request that came in pieces was handled, parked or dropped: free its memory."""
        if self.hold is not None:
            self.hold.end()

    def close(self, *, reusable: bool) -> None:
        """Release the buffer. `reusable`: no view of it exists, and no task may write to it."""
        self.frame_is_done()
        self.keep(0)
        buffer = self._detached()
        if reusable:
            self._pool.release(buffer)
        else:
            self._pool.forget(buffer)
        self.hold, self._give_up = None, _nothing  # which hold the connection

    def _use(self, buffer: PoolBuffer) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)

    def _packed(self, position: int, room: int = 2) -> PoolBuffer:
        """Move the bytes after `position` to a small buffer; return the old one to the caller."""
        rest = self.have - position
        packed = self._pool.packed(self.view[position : self.have], room) if rest else None
        old = self._detached()
        self.have = rest
        if packed is not None:
            self._use(packed)
        return old

    def _detached(self) -> PoolBuffer:
        buffer, self.buffer = self.buffer, _NO_BUFFER
        self.view = _NOTHING
        return buffer
