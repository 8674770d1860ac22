"""Streams for tasks: accept them, receive some bytes, send all bytes.

`broker.network` (Kafka's protocol) accepts with them, `broker.metrics` (HTTP) does all with them;
both know streams only by the protocols of `broker.world.transport`.
"""

import errno
from collections.abc import Callable
from typing import Final

import trio

from broker.world.clock import TaskClock
from broker.world.transport import Listening, Stream
from storage.filesystem import Piece

_CAPACITY_ERRORS: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
_GONE_ERRORS: Final = frozenset((errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN))
_PAUSE_S: Final = 0.1
_ACCEPTS_PER_TURN: Final = 16


async def accept_streams(
    listening: Listening,
    clock: TaskClock,
    welcome: Callable[[Stream], object],
    no_capacity: Callable[[OSError], object],
    hold_s: Callable[[], float] = lambda: 0.0,
) -> None:
    """Hand every client to `welcome`, until the port is given back or the task cancelled.

    Each is held for `hold_s()` seconds first, and those behind it with it. If the process runs out
    of descriptors or memory, call `no_capacity` and pause for `_PAUSE_S`. Ignore a client that
    disconnects in the backlog. Raises any other OSError.
    """
    burst = 0
    # The port may be given back after this task was woken and before it runs.
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
        held_s = hold_s()
        if held_s > 0:
            try:
                await clock.sleep(held_s)
            except BaseException:
                stream.close()
                raise
        welcome(stream)
        burst += 1
        if burst >= _ACCEPTS_PER_TURN:
            burst = 0
            await trio.lowlevel.checkpoint()


async def receive_some(stream: Stream, buffer: memoryview) -> int:
    """Wait for bytes and put them into the buffer; return their number, 0 at the stream's end.

    A checkpoint only if it waits. Raises OSError if the connection was cut.
    """
    while True:
        try:
            return stream.recv_into(buffer)
        except BlockingIOError:
            await stream.wait_readable()


async def send_all(stream: Stream, data: Piece) -> None:
    """Send all of `data`, waiting while the peer is slow.

    A checkpoint only if it waits. Raises OSError if the connection was cut.
    """
    while True:
        try:
            sent = stream.send(data)
        except BlockingIOError:
            await stream.wait_writable()
            continue
        if sent == len(data):
            return
        data = memoryview(data)[sent:]
