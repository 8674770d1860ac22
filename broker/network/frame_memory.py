"""How many bytes of incomplete requests may be in memory.

A client may announce a request of 100 MB and never finish it, a thousand times over. Kafka bounds
that only if `queued.max.request.bytes` is set, and then by the announced sizes. Here
`incomplete.request.max.bytes` always bounds the bytes that have arrived:

1. A frame of more than `SMALL_FRAME` bytes is counted from its first bytes until its request was
   handled or is parked. Smaller frames never wait: the number of connections bounds them.
2. Before a connection receives more of a counted frame it takes a window of memory
   (`FrameHold.take_window`). So many connections can receive at the same time within the limit.
3. When no memory is left, connections with counted frames stop receiving, so TCP stops their
   clients. One connection may always go on; when it is done, the one that has waited longest
   follows. So frames get finished however much is held, and the total exceeds the limit by at most
   one request and a window. A connection without an incomplete frame first receives a few kilobytes
   only.
4. While a connection waits for memory, those that hold it have a time limit: a client that sends
   nothing for `STALLED_S`, or needs longer than `LONGEST_S` for its frame, loses its connection
   (`is_overdue`).
5. At most `LANES` connections hold windows at the same time. So a thousand clients that send large
   requests at once delay the small requests of others by a few receive calls, not by a thousand.

Even if memory is not short, a frame that comes more slowly than `SLOWEST` bytes a second counts as
idle time, which `connections.max.idle.ms` limits: a byte now and then does not keep a connection
open. Event loop only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import trio

SMALL_FRAME: Final = 16 * 1024
WINDOW: Final = 1024 * 1024
"""The most that one receive call adds to a counted frame."""
STALLED_S: Final = 5.0
LONGEST_S: Final = 30.0
LANES: Final = 8
SLOWEST: Final = 1024
"""Bytes a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMemoryStatistics:
    """Numbers for metrics and tests."""

    held: int
    """Bytes of counted frames."""
    waiting: int
    """Connections that wait for memory or a lane, and do not receive."""


class FrameMemory:
    """The memory for incomplete frames that all connections of a broker share."""

    __slots__ = ("_ahead", "_lanes", "_queue", "held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._ahead: FrameHold | None = None
        """The connection's hold that may go on although no memory is left."""
        self._lanes = LANES
        """Free lanes."""
        self._queue = trio.lowlevel.ParkingLot()

    @property
    def waited_for(self) -> bool:
        """Whether a connection waits because no memory is left."""
        return self.held >= self.limit and bool(self._queue)

    def may_take(self, hold: "FrameHold") -> bool:
        """Whether `hold` may have a window now; if so it takes a lane.

        The one that goes on without memory needs no lane.
        """
        if self._ahead is hold or hold.in_lane:
            return self._ahead is hold or self.held < self.limit or self._go_ahead(hold)
        if not self._lanes:
            return False
        if self.held >= self.limit:
            return self._go_ahead(hold)
        self._lanes -= 1
        hold.in_lane = True
        return True

    def _go_ahead(self, hold: "FrameHold") -> bool:
        if self._ahead is None:
            self._ahead = hold
        return self._ahead is hold

    def give_lane_back(self) -> None:
        """Free a connection's lane and wake the next one."""
        self._lanes += 1
        self.wake_next()

    async def wait(self) -> None:
        """Wait until it is worth calling `may_take` again."""
        await self._queue.park()

    def change(self, bytes_more: int) -> None:
        """Add `bytes_more`, which may be negative, to the bytes held."""
        self.held += bytes_more
        if bytes_more < 0:
            self.wake_next()

    def wake_next(self) -> None:
        """Wake the connection that has waited longest, if there is memory and a lane for it."""
        if self._queue and self._lanes and (self.held < self.limit or self._ahead is None):
            self._queue.unpark()

    def leave(self, hold: "FrameHold") -> None:
        """`hold` no longer has a frame under way."""
        if self._ahead is hold:
            self._ahead = None
        self.wake_next()

    def statistics(self) -> FrameMemoryStatistics:
        """A snapshot."""
        return FrameMemoryStatistics(held=self.held, waiting=self._queue.statistics().tasks_waiting)


class FrameHold:
    """The memory of one connection's incomplete frame, if any. Times are monotonic seconds."""

    __slots__ = ("_began", "_counted", "_memory", "_progressed", "arrived", "in_lane", "wanted")

    def __init__(self, memory: FrameMemory) -> None:
        self._memory = memory
        self.wanted = 0
        """Size of the frame; 0 if none is under way."""
        self.arrived = 0
        self.in_lane = False
        self._counted = 0
        self._began = 0.0
        self._progressed = 0.0

    @property
    def is_counted(self) -> bool:
        """Whether a frame is under way that is not small (rule 1)."""
        return self.wanted > SMALL_FRAME

    def note(self, wanted: int, arrived: int, now: float) -> None:
        """Note that `arrived` of the frame's `wanted` bytes have come, the last one at `now`."""
        if not self.wanted:
            self._began = now
        self._progressed = now
        self.wanted, self.arrived = wanted, arrived
        if wanted > SMALL_FRAME:
            self._count(arrived)

    def received(self, have: int) -> None:
        """Free the lane if the buffer, with its `have` bytes, holds the whole frame."""
        if have >= self.wanted:
            self._leave_lane()

    def settle(self) -> None:
        """Give window and lane back, because nothing more has come or the turn is over."""
        self._leave_lane()
        if self._counted > self.arrived:
            self._count(self.arrived)

    def take_window(self) -> int:
        """Take a window: return up to where the buffer may be filled, or 0 if it must `wait`."""
        if not self._memory.may_take(self):
            self._leave_lane()
            return 0
        end = min(self.wanted, self.arrived + WINDOW)
        self._count(end)
        self._memory.wake_next()
        return end

    async def wait(self, monotonic: Callable[[], float]) -> None:
        """Wait until `take_window` is worth a try. The wait does not count as the client's time."""
        since = monotonic()
        await self._memory.wait()
        waited = monotonic() - since
        self._began += waited
        self._progressed += waited

    def end(self) -> None:
        """Give all memory back: the request was handled or parked, or will never come whole."""
        if self.wanted:
            self.wanted = self.arrived = 0
            self._leave_lane()
            self._count(0)
            self._memory.leave(self)

    def is_overdue(self, now: float) -> bool:
        """Whether it holds memory that others wait for, and is over a time limit (rule 4)."""
        return (
            self._counted > 0
            and self._memory.waited_for
            and (now - self._progressed > STALLED_S or now - self._began > LONGEST_S)
        )

    def is_too_slow(self, now: float, max_idle_s: float) -> bool:
        """Whether the frame has come more slowly than `SLOWEST` for longer than `max_idle_s`."""
        age = now - self._began
        return self.wanted > 0 and age > max_idle_s and self.arrived < age * SLOWEST

    def _leave_lane(self) -> None:
        if self.in_lane:
            self.in_lane = False
            self._memory.give_lane_back()

    def _count(self, size: int) -> None:
        change, self._counted = size - self._counted, size
        if change:
            self._memory.change(change)
