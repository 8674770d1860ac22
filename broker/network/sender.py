"""Writing replies to a stream: joined bytes, and slices of files by sendfile.

Measured: `sendfile` wins from about 64 KB on; below that reading the slice and joining it to its
header is cheaper than two system calls. A header before a slice goes out with it (`send_part`). A
stream that sends no files (in memory, encrypted) gets every slice read.

The loop must not wait for the disk: before a slice is sent it is asked whether it is in the page
cache; when it is not, a thread reads it in, and only then it is sent.
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
"""Joined bytes leave at this size, so a reply of many small slices is never in memory whole."""
TURN_BYTES: Final = 1024 * 1024
"""After this many bytes from files the other connections get their turn."""
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
        """Whether `read` would not wait for the disk, as far as can be told."""
        ...

    def load(self) -> None:
        """Bring the bytes into the page cache; in a thread."""
        ...

    def fileno(self) -> int:
        """The file's descriptor; OSError when it has none."""
        ...


class ShortFile(Exception):
    """A file has fewer bytes than the reply announced: the connection cannot go on."""


class DiskReader:
    """Brings slices into the page cache without stalling the loop. One per broker."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._limiter = trio.CapacityLimiter(_READERS)
        self.cold_reads = 0
        """Slices that had to be read from the disk."""

    async def load(self, piece: SliceOfFile) -> None:
        """Returns when the bytes can be read without waiting. Raises OSError."""
        self.cold_reads += 1
        await self._workers.in_thread(piece.load, limiter=self._limiter)


async def send_pieces(
    stream: Stream, pieces: Sequence[Any], disk: DiskReader, progress: Callable[[], object]
) -> None:
    """Bytes and slices of files, in order. `progress` is called whenever the peer took something.

    Raises OSError when the connection ended, ShortFile when a file was cut behind our back.
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
