"""Writing replies to a socket: joined bytes, and slices of files by sendfile.

Measured: `os.sendfile` wins from about 64 KB on; below that reading the slice and joining it to its
header is cheaper than two system calls. A header before a slice goes out with MSG_MORE.

The loop must not wait for the disk: before a slice is sent, one byte at its end (and at its begin,
when it is long) is asked for with RWF_NOWAIT. When it is not in the page cache a thread reads the
slice in, and only then it is sent.
"""

import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import trio

SENDFILE_FROM = 64 * 1024
"""Slices of at least this many bytes are sent by sendfile."""
JOIN_UP_TO = 256 * 1024
"""Joined bytes leave at this size, so a reply of many small slices is never in memory whole."""
TURN_BYTES = 1024 * 1024
"""After this many bytes from files the other connections get their turn."""
_WARM_CHUNK = 256 * 1024
_READERS = 4
_BYTES_LIKE = (bytes, bytearray, memoryview)


class SliceOfFile(Protocol):
    """What a records field may be besides bytes (storage's FileSlice)."""

    position: int

    def __len__(self) -> int: ...

    def read(self) -> bytes:
        """The bytes."""
        ...

    def fileno(self) -> int:
        """The file's descriptor; OSError when it has none."""
        ...


class ShortFile(Exception):
    """A file has fewer bytes than the reply announced: the connection cannot go on."""


class DiskReader:
    """Brings slices into the page cache without stalling the loop. One per broker."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_READERS)
        self._probes = hasattr(os, "preadv") and hasattr(os, "RWF_NOWAIT")
        self._byte = [bytearray(1)]
        self.cold_reads = 0
        """Slices that had to be read from the disk."""

    async def warm(self, fd: int, position: int, size: int) -> None:
        """Returns when the bytes can be read without waiting; a checkpoint only if they cannot."""
        if not self._probes or size == 0:
            return
        if self._cached(fd, position + size - 1) and (
            size < SENDFILE_FROM or self._cached(fd, position)
        ):
            return
        self.cold_reads += 1
        await trio.to_thread.run_sync(_read_through, fd, position, size, limiter=self._limiter)

    def _cached(self, fd: int, position: int) -> bool:
        try:
            os.preadv(fd, self._byte, position, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:  # a file system that cannot say
            self._probes = False
        return True


def _read_through(fd: int, position: int, size: int) -> None:
    end = position + size
    while position < end and os.pread(fd, min(_WARM_CHUNK, end - position), position):
        position += _WARM_CHUNK


async def send_bytes(
    sock: socket.socket, data: bytes | memoryview, progress: Callable[[], object], flags: int = 0
) -> None:
    """All of it, waiting where the peer is slow. Raises OSError when the connection ended."""
    while True:
        try:
            sent = sock.send(data, flags)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
            progress()
            continue
        if sent == len(data):
            return
        data = memoryview(data)[sent:]


async def send_pieces(
    sock: socket.socket, pieces: Sequence[Any], disk: DiskReader, progress: Callable[[], object]
) -> None:
    """Bytes and slices of files, in order. `progress` is called whenever the peer took something.

    Raises OSError when the connection ended, ShortFile when a file was cut behind our back.
    """
    joined: list[Any] = []
    joined_bytes = 0
    for piece in pieces:
        size = len(piece)
        if not isinstance(piece, _BYTES_LIKE):
            fd = _descriptor(piece)
            if fd is not None:
                await disk.warm(fd, piece.position, size)
                if size >= SENDFILE_FROM:
                    if joined:
                        await send_bytes(sock, b"".join(joined), progress, socket.MSG_MORE)
                        joined.clear()
                        joined_bytes = 0
                    await _send_file(sock, fd, piece.position, size, progress)
                    continue
            piece = piece.read()
            if len(piece) != size:
                raise ShortFile
        joined.append(piece)
        joined_bytes += size
        if joined_bytes >= JOIN_UP_TO:
            await send_bytes(sock, b"".join(joined), progress)
            joined.clear()
            joined_bytes = 0
    if joined:
        await send_bytes(sock, b"".join(joined), progress)


def _descriptor(piece: SliceOfFile) -> int | None:
    try:
        return piece.fileno()
    except OSError:  # a file in memory
        return None


async def _send_file(
    sock: socket.socket, fd: int, position: int, size: int, progress: Callable[[], object]
) -> None:
    out = sock.fileno()
    budget = TURN_BYTES
    while size:
        try:
            sent = os.sendfile(out, fd, position, size if size < budget else budget)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)
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


def peer_has_closed(sock: socket.socket) -> bool:
    """The peer will send no more, even if bytes of it are still unread. Never blocks."""
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))
