"""The readiness of streams to receive and send, on which all connections wait.

A `Readiness` belongs to a transport and reports its streams by keys and events. The events are the
bits of Linux's epoll. It is level-triggered: it repeats an event that nobody has dealt with.
"""

import select
import socket
from typing import Any, Final, Protocol, final

import trio

from storage.waits import Wait

IN: Final = select.EPOLLIN
OUT: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLHUP | select.EPOLLERR
"""Reported even if the mask does not have it."""
HANGUP: Final = select.EPOLLRDHUP | BROKEN
"""The peer sends no more; bytes that it sent may still be in the stream."""
ONCE: Final = select.EPOLLET
"""With other bits in a mask: report each of them once (edge-triggered)."""


@final
class Ready(Wait):
    """Waits for one of several events of the connection's own stream; may end without one."""

    __slots__ = ("mask",)

    def __init__(self, mask: int) -> None:
        self.mask = mask


READABLE: Final = Ready(IN | HANGUP)
WRITABLE: Final = Ready(OUT | BROKEN)


class Readiness(Protocol):
    """Reports the events of the streams of one transport."""

    def add(self, stream: Any, mask: int) -> int:
        """Report these events of a stream from now on; return its key."""
        ...

    def modify(self, key: int, mask: int) -> None:
        """Report other events of a stream than before."""
        ...

    def forget(self, key: int) -> None:
        """Report a stream, which is closed, no more."""
        ...

    def poll(self, timeout: int, most: int, /) -> list[tuple[int, int]]:
        """Return (key, events) of at most so many streams, in turn; `timeout` is 0."""
        ...

    async def wait(self) -> None:
        """Return when `poll` would report a stream."""
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
        """See `Readiness`. The kernel forgets a descriptor when it is closed."""

    async def wait(self) -> None:
        """See `Readiness`."""
        await trio.lowlevel.wait_readable(self._epoll.fileno())
