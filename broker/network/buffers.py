"""Receive buffers: how much memory connections may cost, and who pays for page faults.

* A connection that waits for its next request holds no buffer at all: it takes one when bytes have
  arrived and gives it back when it is idle. So ten thousand idle connections cost ten thousand
  small objects, and a few busy ones always work on memory that is warm in the cache.
* A frame's announced size is only a claim. A large buffer is anonymous memory of the frame's size,
  of which the kernel provides the pages that bytes have arrived for; it costs no copying while it
  fills, and goes back to the system at once when it is let go. (A `bytearray` is filled with zeros
  when it is made: 100 MB that were announced would be there, after a stall of 40 ms.)
* When many connections hold a standard buffer at the same time, incomplete frames are moved to
  buffers of their own size (`crowded`).
* Buffers are powers of two; free ones are kept up to `RETAINED_BYTES`: a fresh megabyte costs 256
  page faults, which is more than handling the request.

A buffer is a `bytearray`, or `mmap` where it is large, that is never resized, so views of it stay
valid; but they show other bytes as soon as it is used again. With `check=True` (Python's
development mode) `release` logs an error when somebody still holds a view.
"""

import logging
import mmap
from dataclasses import dataclass
from typing import cast

logger = logging.getLogger(__name__)

STANDARD_BYTES = 128 * 1024
"""What one receive call may fill: measured, larger ones gain nothing."""
SMALL_BYTES = 1024
GROWTH = 4
RETAINED_BYTES = 32 * 1024 * 1024
CROWDED = 64
"""Standard buffers in use from which on incomplete frames are packed tightly: 8 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatistics:
    """Numbers for metrics and tests."""

    in_use: int
    """Buffers that connections hold now, packed ones not counted."""
    bytes_in_use: int
    """Of standard size; what large ones hold is `FrameMemoryStatistics.held`."""
    bytes_free: int
    """Kept for the next taker."""


def _size_class(size: int) -> int:
    return 1 << (size - 1).bit_length()


class BufferPool:
    """Buffers shared by all connections of a broker. Not thread safe: event loop only."""

    def __init__(self, *, retained_bytes: int = RETAINED_BYTES, check: bool = False) -> None:
        self._standard: list[bytearray] = []
        self._large: dict[int, list[bytearray]] = {}
        self._retained = retained_bytes
        self._free_bytes = 0
        self._in_use = 0
        self._bytes_in_use = 0
        self._check = check

    @property
    def crowded(self) -> bool:
        """Many connections hold a buffer: pack what is incomplete."""
        return self._in_use > CROWDED

    def acquire(self, wanted: int = 0) -> bytearray:
        """A standard buffer; a larger one if `wanted` says so and one is free."""
        self._in_use += 1
        if wanted > STANDARD_BYTES:
            free = self._large.get(_size_class(wanted))
            if free:
                return self._taken(free.pop())
        if self._standard:
            return self._taken(self._standard.pop())
        self._bytes_in_use += STANDARD_BYTES
        return bytearray(STANDARD_BYTES)

    def free_large(self, frame: int) -> bytearray | None:
        """A free buffer that holds a frame of this size; None when none lies here."""
        free = self._large.get(_size_class(frame))
        if not free:
            return None
        self._in_use += 1
        return self._taken(free.pop())

    def grown(self, frame: int, arrived: int) -> bytearray:
        """A buffer larger than `arrived` bytes, on the way to one that holds `frame` bytes.

        Raises OSError when the system has no more memory to promise.
        """
        large = self.free_large(frame)
        if large is not None:
            return large
        size = _size_class(min(frame, arrived * GROWTH))
        if size < STANDARD_BYTES:
            return bytearray(size) if self.crowded else self.acquire()
        if size == STANDARD_BYTES:
            return self.acquire()
        large = _anonymous(_size_class(frame))
        self._in_use += 1
        return large

    def packed(self, content: memoryview) -> bytearray:
        """A small buffer of its own for an incomplete frame, with room to go on."""
        buffer = bytearray(max(_size_class(len(content) * 2), SMALL_BYTES))
        buffer[: len(content)] = content
        return buffer

    def release(self, buffer: bytearray) -> None:
        """Give a buffer back. Nobody may hold a view of it."""
        size = len(buffer)
        if size < STANDARD_BYTES:
            return  # a packed one: was never the pool's
        self._in_use -= 1
        if size == STANDARD_BYTES:
            self._bytes_in_use -= size
        if self._check and _is_viewed(buffer):
            logger.error("A request's bytes are still in use after its reply: copy what you keep")
            return
        if self._free_bytes + size > self._retained:
            return
        self._free_bytes += size
        if size == STANDARD_BYTES:
            self._standard.append(buffer)
        else:
            self._large.setdefault(size, []).append(buffer)

    def release_parked(self, buffer: bytearray) -> None:
        """Give a buffer back while its request is parked: views exist, but nobody may use them.

        With `check` their users read nonsense at once instead of another client's bytes some day.
        """
        if self._check and len(buffer) >= STANDARD_BYTES:
            buffer[:] = b"\xdd" * len(buffer)
            self.forget(buffer)
        else:
            self.release(buffer)

    def forget(self, buffer: bytearray) -> None:
        """The holder ended while somebody may still write to it: never use it again."""
        if len(buffer) >= STANDARD_BYTES:
            self._in_use -= 1
            if len(buffer) == STANDARD_BYTES:
                self._bytes_in_use -= STANDARD_BYTES

    def statistics(self) -> BufferStatistics:
        """A snapshot."""
        return BufferStatistics(
            in_use=self._in_use, bytes_in_use=self._bytes_in_use, bytes_free=self._free_bytes
        )

    def _taken(self, buffer: bytearray) -> bytearray:
        self._free_bytes -= len(buffer)
        if len(buffer) == STANDARD_BYTES:
            self._bytes_in_use += STANDARD_BYTES
        return buffer


def _anonymous(size: int) -> bytearray:
    """Memory without pages, which is used as a bytearray is: by index, by slice, through views."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return cast("bytearray", mmap.mmap(-1, size, flags=flags))


def _is_viewed(buffer: bytearray | mmap.mmap) -> bool:
    """Either kind refuses to change its size while views of it exist."""
    try:
        if isinstance(buffer, mmap.mmap):
            buffer.resize(len(buffer))
        else:
            buffer.append(0)
            buffer.pop()
    except BufferError:
        return True
    return False
