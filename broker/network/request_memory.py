"""How many bytes of requests may be in memory: `queued.max.request.bytes`. Off unless it is set.

A connection claims a frame's bytes when it knows the frame's size, and gives them back when the
request has been handled (a parked request has given its buffer back already). When nothing is left
connections are muted: they stop reading, so TCP stops their clients, until bytes come back.

As Kafka's `SimpleMemoryPool` (not strict): whoever finds any byte left may claim a whole frame, so
the total exceeds the limit by one frame at most, and a frame that is claimed can always be read to
its end: nobody who holds bytes ever waits for more. Event loop only.
"""

from dataclasses import dataclass

import trio


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMemoryStatistics:
    """Numbers for metrics and tests; bytes."""

    available: int
    """Below 0 by what the last frame went over the limit."""
    used: int
    muted: int
    """Connections that wait."""


class RequestMemory:
    """The bytes of one broker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._available = limit
        self._muted = trio.lowlevel.ParkingLot()

    @property
    def exhausted(self) -> bool:
        """Nothing is left."""
        return self._available <= 0

    async def wait_available(self) -> None:
        """Returns when there is anything left."""
        while self._available <= 0:
            await self._muted.park()
        self._wake_next()

    def take(self, size: int) -> None:
        """Claim, without asking whether there is so much."""
        self._available -= size

    def give_back(self, size: int) -> None:
        """Somebody else may have it."""
        self._available += size
        self._wake_next()

    def _wake_next(self) -> None:
        """One at a time: whom there is nothing left for is not woken."""
        if self._available > 0:
            self._muted.unpark()

    def statistics(self) -> RequestMemoryStatistics:
        """A snapshot."""
        return RequestMemoryStatistics(
            available=self._available,
            used=self._limit - self._available,
            muted=self._muted.statistics().tasks_waiting,
        )


class Claim:
    """What one connection holds."""

    __slots__ = ("memory", "size")

    def __init__(self, memory: RequestMemory) -> None:
        self.memory = memory
        self.size = 0

    def hold(self, size: int) -> None:
        """So many bytes have arrived, or will for a frame whose size is known."""
        if size > self.size:
            self.memory.take(size - self.size)
            self.size = size

    def release(self) -> None:
        """What was held has been handled."""
        if self.size:
            size, self.size = self.size, 0
            self.memory.give_back(size)
