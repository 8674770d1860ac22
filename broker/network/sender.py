"""Writing replies to a stream: joined bytes, and slices of files by sendfile.

Measurements: `sendfile` is faster from about 64 KB on; below that, reading the slice and joining it
to its header is cheaper than two system calls. A header before a slice leaves in the same segments
(`send_part`). For a stream that sends no files (in memory, encrypted) every slice is read.

The event loop must not wait for the disk: a thread first reads in a slice that is not in the page
cache, and only then the loop sends it.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from broker.world.transport import Stream
from storage.filesystem import Piece
from storage.waits import PAUSE, Lock, call

SENDFILE_FROM: Final = 64 * 1024
"""Slices of at least this many bytes are sent by sendfile."""
JOIN_UP_TO: Final = 64 * 1024
"""Joined bytes are sent at this size, so a reply of many small slices is never whole in memory."""
TURN_BYTES: Final = 1024 * 1024
"""After this many bytes of a file the other connections get their turn."""
_READERS: Final = 4
BYTES_LIKE: Final = (bytes, bytearray, memoryview)


class SliceOfFile(Protocol):
    """The value of a records field if it is not bytes (storage's FileSlice)."""

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


class SlowPeer(Protocol):
    """The receiver of the bytes; notices when it is slow to take them."""

    def waits(self, size: int) -> None:
        """The peer does not take the next bytes yet; `size` of them are in memory."""
        ...

    def progressed(self) -> None:
        """The peer has taken bytes after a wait."""
        ...


class ShortFile(Exception):
    """A file has fewer bytes than the reply announced, so the connection must end."""


class DiskReader:
    """Reads slices into the page cache without blocking the loop. One per broker."""

    def __init__(self) -> None:
        self._readers = Lock(_READERS)
        self.cold_reads = 0
        """Slices that had to be read from the disk."""

    async def load(self, piece: SliceOfFile) -> None:
        """Wait until the bytes are in the page cache. Raises OSError."""
        self.cold_reads += 1
        async with self._readers:
            await call(piece.load)


async def send_pieces(
    stream: Stream, pieces: Sequence[Any], disk: DiskReader, peer: SlowPeer
) -> None:
    """Send bytes and slices of files, in order.

    Raises OSError if the connection ended, ShortFile if a file was truncated meanwhile.
    """
    joined: list[Any] = []
    joined_bytes = 0
    for piece in pieces:
        size = len(piece)
        if not isinstance(piece, BYTES_LIKE):
            if not piece.is_cached():
                await disk.load(piece)
            if size >= SENDFILE_FROM and stream.sends_files:
                descriptor = _descriptor(piece)
                if descriptor is not None:
                    if joined:
                        await send_all(stream, b"".join(joined), peer, more_follows=True)
                        joined.clear()
                        joined_bytes = 0
                    await _send_file(stream, descriptor, piece.position, size, peer)
                    continue
            piece = piece.read()
            if len(piece) != size:
                raise ShortFile
        joined.append(piece)
        joined_bytes += size
        if joined_bytes >= JOIN_UP_TO:
            await send_all(stream, b"".join(joined), peer)
            joined.clear()
            joined_bytes = 0
    if joined:
        await send_all(stream, b"".join(joined), peer)


async def send_all(
    stream: Stream, data: Piece, peer: SlowPeer, *, more_follows: bool = False
) -> None:
    """Send all of `data`, waiting while the peer is slow.

    Raises OSError if the connection has ended.
    """
    send = stream.send_part if more_follows else stream.send
    while True:
        try:
            sent = send(data)
        except BlockingIOError:
            sent = -1
        if sent == len(data):
            return
        if sent < 0:  # not in the `except`: the wait would keep the exception alive
            peer.waits(len(data))
            await stream.writable
            peer.progressed()
        else:
            data = memoryview(data)[sent:]


def _descriptor(piece: SliceOfFile) -> int | None:
    try:
        return piece.fileno()
    except OSError:  # a file in memory
        return None


async def _send_file(
    stream: Stream, descriptor: int, position: int, size: int, peer: SlowPeer
) -> None:
    budget = TURN_BYTES
    while size:
        try:
            sent = stream.send_file(descriptor, position, size if size < budget else budget)
        except BlockingIOError:
            sent = -1
        if sent < 0:
            peer.waits(0)
            await stream.writable
            peer.progressed()
            budget = TURN_BYTES
            continue
        if sent == 0:
            raise ShortFile
        position += sent
        size -= sent
        budget -= sent
        if budget <= 0:
            await PAUSE
            budget = TURN_BYTES
