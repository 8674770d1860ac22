"""What a connection has received and not handled yet: a few frames and the begin of one.

The bytes lie in one buffer of the pool's, from its begin. It is taken when bytes may come, and
given back or exchanged for a small one when none do; an incomplete frame moves to the front, of a
larger buffer if it needs one (`broker.network.buffers` has the reasons and sizes).
"""

from typing import Final

from broker.network.buffers import GROWTH, STANDARD_BYTES, BufferPool
from broker.network.frame_memory import FrameHold, FrameMemory
from protocol.framing import SIZE_BYTES

_NO_BUFFER: Final = bytearray()
_NOTHING: Final = memoryview(_NO_BUFFER)

FIRST_BYTES: Final = 8192
"""Received of a request before it is known whether it is counted."""


class ReceiveBuffer:
    """One connection's. The hot loop fills it through the fields: a call would cost as much as the
    receive itself."""

    __slots__ = ("_frames", "_pool", "buffer", "have", "hold", "view")

    def __init__(self, pool: BufferPool, frames: FrameMemory) -> None:
        self._pool = pool
        self._frames = frames
        self.hold: FrameHold | None = None
        """What is known of the incomplete frame; None until there was one."""
        self.buffer = _NO_BUFFER
        """Empty while none is held."""
        self.view = _NOTHING
        """Of the whole buffer."""
        self.have = 0
        """Bytes in it, from its begin."""

    def acquire(self, wanted: int) -> None:
        """Take one; a large one if a frame of `wanted` bytes is likely and one is free.

        A small one where unfinished requests hold much memory: a frame's size shows in it as well.
        """
        short = self._frames.held >= self._frames.limit // 2
        self._use(bytearray(FIRST_BYTES) if short else self._pool.acquire(wanted))

    def clear(self) -> None:
        """All that has come was handled."""
        self.have = 0
        if self.hold is not None:
            self.hold.end()

    def pause(self) -> None:
        """Its turn is over."""
        if self.hold is not None:
            self.hold.settle()

    def keep_rest(self, position: int, wanted: int, now: float) -> None:
        """What is behind `position` moves to the front, of a larger buffer if need be.

        Something is there. `wanted` is the size of the frame that begins with it, 0 when it is not
        known yet. Raises OSError when there is no memory for it.
        """
        rest = self.have - position
        self.have = rest
        hold = self.hold
        if hold is None:
            hold = self.hold = FrameHold(self._frames)
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
        """Hold no buffer, or one of the right size, while nothing comes."""
        pool = self._pool
        if self.have == 0:
            pool.release(self._detached())
            return
        self.pause()
        if pool.crowded and GROWTH * self.have < len(self.view) <= STANDARD_BYTES:
            pool.release(self._packed(0))

    def shrink_parked(self, position: int) -> None:
        """The request before `position` is parked: keep what is behind it, and let the rest go."""
        self._pool.release_parked(self._packed(position))
        self.frame_is_done()

    def frame_is_done(self) -> None:
        """The request that came in pieces was handled."""
        if self.hold is not None:
            self.hold.end()

    def close(self, *, reusable: bool) -> None:
        """Let go of the buffer. `reusable`: nobody has a view of it, or may still write to it."""
        self.frame_is_done()
        buffer = self._detached()
        if reusable:
            self._pool.release(buffer)
        else:
            self._pool.forget(buffer)

    def _use(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)

    def _packed(self, position: int) -> bytearray:
        """What is behind `position` moves to a small buffer; the old one is the caller's."""
        rest = self.have - position
        packed = self._pool.packed(self.view[position : self.have]) if rest else None
        old = self._detached()
        self.have = rest
        if packed is not None:
            self._use(packed)
        return old

    def _detached(self) -> bytearray:
        buffer, self.buffer = self.buffer, _NO_BUFFER
        self.view = _NOTHING
        return buffer
