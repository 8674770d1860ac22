"""Receive buffers: how much memory connections take, and how page faults are avoided.

* A connection that waits for its next request holds no buffer: it takes one before it receives and
  gives it back when it is idle. So ten thousand idle connections cost ten thousand small objects,
  and a few busy ones always work on memory that is warm in the cache.
* A client may announce a large frame and never send it. So a large buffer is anonymous memory of
  the frame's size, for which the kernel provides pages only where bytes have arrived; it is not
  copied while it fills, and its release returns the memory to the system at once. (A `bytearray`
  is filled with zeros when it is made: an announced 100 MB would cost 100 MB and a stall of 40 ms.)
* When many connections hold a standard buffer at the same time, incomplete frames are moved to
  buffers of their own size (`crowded`).
* Sizes are powers of two; free buffers are kept up to `RETAINED_BYTES`, because a fresh megabyte
  costs 256 page faults, which is more than handling the request.

A buffer is a `bytearray`, or an `mmap` if it is large, and is never resized, so views of it stay
valid; but they show other bytes as soon as it is used again. With `check=True` (Python's
development mode) `release` logs an error if a view of the buffer still exists.
"""

import logging
import mmap
from dataclasses import dataclass
from typing import TypeAlias

logger = logging.getLogger(__name__)

PoolBuffer: TypeAlias = bytearray | mmap.mmap
"""Indexes, slices and views are the same in both."""

STANDARD_BYTES = 128 * 1024
"""The most that one receive call fills: measurements show no gain from larger buffers."""
SMALL_BYTES = 1024
GROWTH = 4
RETAINED_BYTES = 32 * 1024 * 1024
CROWDED = 64
"""With more standard buffers in use than this (8 MB), incomplete frames are packed tightly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatistics:
    """Numbers for metrics and tests."""

    in_use: int
    """Buffers that connections hold now, except packed ones."""
    bytes_in_use: int
    """In buffers of standard size; bytes in large ones are in `FrameMemoryStatistics.held`."""
    bytes_free: int
    """In free buffers that are kept."""


def _size_class(size: int) -> int:
    return 1 << (size - 1).bit_length()


class BufferPool:
    """Buffers shared by all connections of a broker. Not thread safe: event loop only."""

    def __init__(self, *, retained_bytes: int = RETAINED_BYTES, check: bool = False) -> None:
        self._standard: list[PoolBuffer] = []
        self._large: dict[int, list[PoolBuffer]] = {}
        self._retained = retained_bytes
        self._free_bytes = 0
        self._in_use = 0
        self._bytes_in_use = 0
        self._check = check

    @property
    def crowded(self) -> bool:
        """Whether so many connections hold a buffer that incomplete frames are packed."""
        return self._in_use > CROWDED

    def acquire(self, wanted: int = 0) -> PoolBuffer:
        """Take a standard buffer, or a free one that holds `wanted` bytes if that is larger."""
        self._in_use += 1
        if wanted > STANDARD_BYTES:
            free = self._large.get(_size_class(wanted))
            if free:
                return self._taken(free.pop())
        if self._standard:
            return self._taken(self._standard.pop())
        self._bytes_in_use += STANDARD_BYTES
        return bytearray(STANDARD_BYTES)

    def free_large(self, frame: int) -> PoolBuffer | None:
        """Take a free large buffer that holds `frame` bytes; None when there is none."""
        free = self._large.get(_size_class(frame))
        if not free:
            return None
        self._in_use += 1
        return self._taken(free.pop())

    def grown(self, frame: int, arrived: int) -> PoolBuffer:
        """Take a buffer larger than `arrived` bytes, for a frame of `frame` bytes.

        Raises OSError when the system grants no more memory.
        """
        free = self.free_large(frame)
        if free is not None:
            return free
        size = _size_class(min(frame, arrived * GROWTH))
        if size < STANDARD_BYTES:
            return bytearray(size) if self.crowded else self.acquire()
        if size == STANDARD_BYTES:
            return self.acquire()
        large = _anonymous(_size_class(frame))
        self._in_use += 1
        return large

    def packed(self, content: memoryview, room: int = 2) -> PoolBuffer:
        """Copy content to a buffer of `room` times its size, if that is small; else to one of the
        pool."""
        have = len(content)
        size = max(_size_class(have * room), SMALL_BYTES)
        if size < STANDARD_BYTES:
            buffer: PoolBuffer = bytearray(size)
        else:
            buffer = self.acquire() if have <= STANDARD_BYTES else self.grown(size, have)
        buffer[:have] = content
        return buffer

    def release(self, buffer: PoolBuffer) -> None:
        """Give a buffer back. No view of it may exist."""
        size = len(buffer)
        if size < STANDARD_BYTES:
            return  # a packed one, which is not counted here
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

    def release_parked(self, buffer: PoolBuffer) -> None:
        """Give a buffer back while its request is parked: views exist, but must not be used.

        With `check` the bytes are overwritten, so that a user of a view reads nonsense at once
        instead of, some day, another client's bytes.
        """
        if self._check and len(buffer) >= STANDARD_BYTES:
            buffer[:] = b"\xdd" * len(buffer)
            self.forget(buffer)
        else:
            self.release(buffer)

    def forget(self, buffer: PoolBuffer) -> None:
        """Never use this buffer again: its connection ended while a task may still write to it."""
        if len(buffer) >= STANDARD_BYTES:
            self._in_use -= 1
            if len(buffer) == STANDARD_BYTES:
                self._bytes_in_use -= STANDARD_BYTES

    def statistics(self) -> BufferStatistics:
        """A snapshot."""
        return BufferStatistics(
            in_use=self._in_use, bytes_in_use=self._bytes_in_use, bytes_free=self._free_bytes
        )

    def _taken(self, buffer: PoolBuffer) -> PoolBuffer:
        self._free_bytes -= len(buffer)
        if len(buffer) == STANDARD_BYTES:
            self._bytes_in_use += STANDARD_BYTES
        return buffer


def _anonymous(size: int) -> mmap.mmap:
    """Return memory without pages."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return mmap.mmap(-1, size, flags=flags)


def _is_viewed(buffer: PoolBuffer) -> bool:
    """Whether views of the buffer exist: if so, both kinds refuse to be resized."""
    try:
        if isinstance(buffer, mmap.mmap):
            buffer.resize(len(buffer))
        else:
            buffer.append(0)
            buffer.pop()
    except BufferError:
        return True
    return False
