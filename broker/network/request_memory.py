"""How many bytes of requests may be in memory: `queued.max.request.bytes`. Off unless it is set.

A connection claims a frame's bytes when it knows the frame's size, and gives them back when the
request was handled or is parked. When no memory is left, connections are muted: they stop
receiving, so TCP stops their clients, until bytes are given back.

As in Kafka's `SimpleMemoryPool` (not strict), a connection may claim a whole frame if any byte is
left. So the total exceeds the limit by at most one frame, and a claimed frame can always be
received to its end: a connection that holds bytes never waits for more. Event loop only.
"""

from dataclasses import dataclass

from storage.waits import Waiters


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMemoryStatistics:
    """Numbers for metrics and tests; bytes."""

    available: int
    """Negative if the last frame went over the limit."""
    used: int
    muted: int
    """Connections that wait for memory."""


class RequestMemory:
    """The request memory of one broker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._available = limit
        self._muted: Waiters[None] = Waiters()

    @property
    def exhausted(self) -> bool:
        """Whether no byte is left."""
        return self._available <= 0

    async def wait_available(self) -> None:
        """Wait until any byte is left."""
        while self._available <= 0:
            await self._muted.wait(None, self._wake_next, parked=True)
        self._wake_next()

    def take(self, size: int) -> None:
        """Claim `size` bytes, even if fewer are left."""
        self._available -= size

    def give_back(self, size: int) -> None:
        """Give `size` bytes back, and wake a waiter."""
        self._available += size
        self._wake_next()

    def _wake_next(self) -> None:
        """Wake one waiter at a time, and only while memory is left."""
        if self._available > 0:
            self._muted.admit_next()

    def statistics(self) -> RequestMemoryStatistics:
        """A snapshot."""
        return RequestMemoryStatistics(
            available=self._available,
            used=self._limit - self._available,
            muted=len(self._muted),
        )


class Claim:
    """The request memory that one connection holds."""

    __slots__ = ("memory", "size")

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.size = 0

    def hold(self, size: int) -> None:
        """Raise the claim to `size`: bytes that have come, or the known size of a frame."""
        if size > self.size:
            self.memory.take(size - self.size)
            self.size = size

    def release(self) -> None:
        """Give the claim back: the request was handled or parked."""
        if self.size:
            size, self.size = self.size, 0
            self.memory.give_back(size)
