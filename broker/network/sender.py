"""Writing replies to a stream: joined bytes, and slices of files by sendfile.

Measurements: `sendfile` is faster from about 64 KB on; below that, reading the slice and joining it
to its header is cheaper than two system calls. A header before a slice leaves in the same segments
(`send_part`). For a stream that sends no files (in memory, encrypted) every slice is read.

The event loop must not wait for the disk: a slice that is not in the page cache is first read in by
a thread, and only then sent.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import trio

from broker.world.streams import send_all
from broker.world.transport import Stream
from broker.world.workers import Workers

SENDFILE_FROM: Final = 64 * 1024
"""Slices of at least this many bytes are sent by sendfile."""
JOIN_UP_TO: Final = 256 * 1024
"""Joined bytes are sent at this size, so a reply of many small slices is never whole in memory."""
TURN_BYTES: Final = 1024 * 1024
"""After this many bytes of a file the other connections get their turn."""
_READERS: Final = 4
_BYTES_LIKE: Final = (bytes, bytearray, memoryview)


class SliceOfFile(Protocol):
    """What a records field may be besides bytes (storage's FileSlice)."""

    position: int

    def __len__(self) -> int: ...

    def read(self) -> bytes:
        """The bytes."""
        ...

    def is_cached(self) -> bool:
        """Whether the bytes are probably in the page cache, so that `read` does not wait."""
        ...

    def load(self) -> None:
        """Read the bytes into the page cache; called in a thread."""
        ...

    def fileno(self) -> int:
        """Return the file's descriptor. Raises OSError when it has none."""
        ...


class ShortFile(Exception):
    """A file has fewer bytes than the reply announced, so the connection must end."""


class DiskReader:
    """Reads slices into the page cache without blocking the loop. One per broker."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._limiter = trio.CapacityLimiter(_READERS)
        self.cold_reads = 0
        """Slices that had to be read from the disk."""

    async def load(self, piece: SliceOfFile) -> None:
        """Wait until the bytes are in the page cache. Raises OSError."""
        self.cold_reads += 1
        await self._workers.in_thread(piece.load, limiter=self._limiter)


async def send_pieces(
    stream: Stream, pieces: Sequence[Any], disk: DiskReader, progress: Callable[[], object]
) -> None:
    """Send bytes and slices of files, in order; call `progress` whenever the peer took something.

    Raises OSError if the connection ended, ShortFile if a file was truncated meanwhile.
    """
    joined: list[Any] = []
    joined_bytes = 0
    for piece in pieces:
        size = len(piece)
        if not isinstance(piece, _BYTES_LIKE):
            if not piece.is_cached():
                await disk.load(piece)
            if size >= SENDFILE_FROM and stream.sends_files:
                descriptor = _descriptor(piece)
                if descriptor is not None:
                    if joined:
                        await send_all(stream, b"".join(joined), progress, more_follows=True)
                        joined.clear()
                        joined_bytes = 0
                    await _send_file(stream, descriptor, piece.position, size, progress)
                    continue
            piece = piece.read()
            if len(piece) != size:
                raise ShortFile
        joined.append(piece)
        joined_bytes += size
        if joined_bytes >= JOIN_UP_TO:
            await send_all(stream, b"".join(joined), progress)
            joined.clear()
            joined_bytes = 0
    if joined:
        await send_all(stream, b"".join(joined), progress)


def _descriptor(piece: SliceOfFile) -> int | None:
    try:
        return piece.fileno()
    except OSError:  # a file in memory
        return None


async def _send_file(
    stream: Stream, descriptor: int, position: int, size: int, progress: Callable[[], object]
) -> None:
    budget = TURN_BYTES
    while size:
        try:
            sent = stream.send_file(descriptor, position, size if size < budget else budget)
        except BlockingIOError:
            await stream.wait_writable()
            progress()
            budget = TURN_BYTES
            continue
        if sent == 0:
            raise ShortFile
        position += sent
        size -= sent
        budget -= sent
        if budget <= 0:
            await trio.lowlevel.checkpoint()
            budget = TURN_BYTES
