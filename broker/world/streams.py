"""What everyone does with streams: accept them, receive what comes, send all there is.

`broker.network` (Kafka's protocol) and `broker.metrics` (HTTP) stand on these; both know streams
only as `broker.world.transport` has them.
"""

import errno
from collections.abc import Callable
from typing import Final

import trio

from broker.world.clock import Clock
from broker.world.transport import Listening, Piece, Stream

_CAPACITY_ERRORS: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_GONE_ERRORS: Final = frozenset((errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN))
_PAUSE_S: Final = 0.1
_ACCEPTS_PER_TURN: Final = 16


async def accept_streams(
    listening: Listening,
    clock: Clock,
    welcome: Callable[[Stream], object],
    no_capacity: Callable[[OSError], object],
) -> None:
    """Hand every client to `welcome`, until the port is given back or the task cancelled.

    When the process runs out of descriptors or memory `no_capacity` is told, and accepting pauses
    for a moment; a client that ends in the backlog is nobody's error. Raises any other OSError.
    """
    burst = 0
    # The port may be given back between a wake-up and its turn, too late to cancel it.
    while listening.is_open:
        try:
            stream = listening.accept()
        except BlockingIOError:
            burst = 0
            await listening.wait_acceptable()
            continue
        except OSError as error:
            if error.errno in _GONE_ERRORS:
                continue
            if error.errno not in _CAPACITY_ERRORS:
                raise
            no_capacity(error)
            await clock.sleep(_PAUSE_S)
            continue
        welcome(stream)
        burst += 1
        if burst >= _ACCEPTS_PER_TURN:
            burst = 0
            await trio.lowlevel.checkpoint()


async def receive_some(stream: Stream, buffer: memoryview) -> int:
    """Fill the buffer with what has arrived, waiting for it; how many bytes, 0 at the end.

    A checkpoint only if it waits. Raises OSError when the connection was cut.
    """
    while True:
        try:
            return stream.recv_into(buffer)
        except BlockingIOError:
            await stream.wait_readable()


async def send_all(
    stream: Stream,
    data: Piece,
    progress: Callable[[], object] | None = None,
    *,
    more_follows: bool = False,
) -> None:
    """All of it, waiting where the peer is slow: `progress` is told whenever it goes on.

    A checkpoint only if it waits. Raises OSError when the connection was cut.
    """
    send = stream.send_part if more_follows else stream.send
    while True:
        try:
            sent = send(data)
        except BlockingIOError:
            await stream.wait_writable()
            if progress is not None:
                progress()
            continue
        if sent == len(data):
            return
        data = memoryview(data)[sent:]
