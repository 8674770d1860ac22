"""Which streams can be received from or sent to: the one thing that all connections wait on.

A `Readiness` belongs to a transport and tells of its streams by keys and events. The events are
bits, those of Linux's epoll. It is level-triggered: what is not dealt with is told again.
"""

import select
import socket
from typing import Any, Final, Protocol, final

import trio

from storage.waits import Wait

IN: Final = select.EPOLLIN
OUT: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLHUP | select.EPOLLERR
"""Told of whether it is asked for or not."""
HANGUP: Final = select.EPOLLRDHUP | BROKEN
"""The peer sends no more; there may be bytes of it still."""
ONCE: Final = select.EPOLLET
"""Asked for with others: tell of each once."""


@final
class Ready(Wait):
    """Waits for one of some events of the connection's own stream; it may be told in vain."""

    __slots__ = ("mask",)

    def __init__(self, mask: int) -> None:
        self.mask = mask


READABLE: Final = Ready(IN | HANGUP)
WRITABLE: Final = Ready(OUT | BROKEN)


class Readiness(Protocol):
    """Tells of the streams of one transport."""

    def add(self, stream: Any, mask: int) -> int:
        """Tell of these events of a stream from now on; return its key."""
        ...

    def modify(self, key: int, mask: int) -> None:
        """Tell of other events."""
        ...

    def forget(self, key: int) -> None:
        """Tell no more of a stream, which is closed."""
        ...

    def poll(self, timeout: int, most: int, /) -> list[tuple[int, int]]:
        """Return (key, events) of at most so many streams, in turn; `timeout` is 0."""
        ...

    async def wait(self) -> None:
        """Return when `poll` would tell of a stream."""
        ...


class SocketReadiness:
    """The kernel's epoll; a key is a descriptor."""

    __slots__ = ("_epoll", "modify", "poll")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.poll = self._epoll.poll
        self.modify = self._epoll.modify

    def add(self, stream: socket.socket, mask: int) -> int:
        """See `Readiness`."""
        key = stream.fileno()
        self._epoll.register(key, mask)
        return key

    def forget(self, key: int) -> None:
        """See `Readiness`. The kernel has forgotten a descriptor that is closed."""

    async def wait(self) -> None:
        """See `Readiness`."""
        await trio.lowlevel.wait_readable(self._epoll.fileno())
