"""Bytes of a stream to frames, each in memory of its own.

Small frames come several in one receive, into memory of the connection, and are copied out of it.
A frame that is larger than that memory is received into a buffer of its own: only its first bytes
are copied, and its records are slices of it.

The last such buffer is used again when nobody has a view of it any more, because a response of a
megabyte would otherwise cost as much for zeros and page faults as for its bytes. The buffer is
dropped when a small frame comes, because then there is nothing to replicate.
"""

import struct
from typing import Final

from protocol.errors import ProtocolError
from protocol.framing import SIZE_BYTES

SMALL_BYTES: Final = 16 * 1024
"""The memory for frames that are copied: the most that one receive brings of them."""
LARGEST: Final = 1 << 30
"""The most bytes of a frame; a larger size is nonsense."""
_KEPT_BYTES: Final = 16 << 20
"""A larger buffer is not kept."""
_MIN_BYTES: Final = 4

_read_size = struct.Struct(">i").unpack_from


class IncomingFrames:
    """The bytes that a connection has received and not passed on.

    `room()` is the memory for the next bytes; `received(n)` takes n bytes and gives whole frames.
    """

    __slots__ = ("_kept", "_large", "_large_have", "_large_size", "_small", "_small_have", "_view")

    def __init__(self) -> None:
        self._small = bytearray(SMALL_BYTES)
        self._view = memoryview(self._small)
        self._small_have = 0
        self._large: bytearray | None = None
        """The buffer of a large frame that is not whole yet."""
        self._large_have = self._large_size = 0
        self._kept: bytearray | None = None

    def room(self) -> memoryview:
        """The memory for the next bytes; never empty."""
        if self._large is not None:
            return memoryview(self._large)[self._large_have : self._large_size]
        return self._view[self._small_have :]

    def received(self, size: int) -> list[tuple[bytes | bytearray, int]]:
        """Take `size` bytes that were put into `room()`; return (buffer, frame's size) of each
        frame that is whole, which begins where its buffer does. Raises ProtocolError."""
        if self._large is not None:
            self._large_have += size
            if self._large_have < self._large_size:
                return []
            whole, self._large = self._large, None
            return [(whole, self._large_size)]
        self._small_have += size
        return self._small_frames()

    def _small_frames(self) -> list[tuple[bytes | bytearray, int]]:
        view, have = self._view, self._small_have
        found: list[tuple[bytes | bytearray, int]] = []
        at = 0
        while have - at >= SIZE_BYTES:
            size = _read_size(view, at)[0]
            if not _MIN_BYTES <= size <= LARGEST:
                raise ProtocolError(f"an answer of {size} bytes")
            start = at + SIZE_BYTES
            if start + size <= have:
                found.append((bytes(view[start : start + size]), size))
                at = start + size
                self._kept = None
            elif SIZE_BYTES + size > SMALL_BYTES:
                self._begin_large(size, view[start:have])
                at = have
            else:
                break
        if at:
            rest = have - at
            view[:rest] = view[at:have]
            self._small_have = rest
        return found

    def _begin_large(self, size: int, first: memoryview) -> None:
        buffer = self._kept
        if buffer is None or not size <= len(buffer) or _is_viewed(buffer):
            buffer = bytearray(size + size // 4)  # the next one is likely to be a little larger
        self._kept = buffer if len(buffer) <= _KEPT_BYTES else None
        buffer[: len(first)] = first
        self._large, self._large_size, self._large_have = buffer, size, len(first)


def _is_viewed(buffer: bytearray) -> bool:
    """Whether a memoryview of it exists, so that its length cannot change."""
    try:
        buffer.append(buffer.pop())  # neither moves it
    except BufferError:
        return True
    return False
