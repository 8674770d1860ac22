"""How many bytes of incomplete requests may be in memory.

A client may announce a request of 100 MB and never finish it, a thousand times over. Kafka bounds
that only if `queued.max.request.bytes` is set, and then by the announced sizes. Here
`incomplete.request.max.bytes` always bounds the bytes that have arrived:

1. A frame of more than `SMALL_FRAME` bytes is counted from its first bytes until its request was
   handled or is parked. Smaller frames never wait: the number of connections bounds them.
2. Before a connection receives more of a counted frame it takes a window of memory
   (`FrameHold.take_window`). So many connections can receive at the same time within the limit.
3. When no memory is left, connections with counted frames stop receiving, so TCP stops their
   clients. One connection may always go on; when it is done, the next of those that wait follows
   (rule 6). So frames get finished however much is held. Frames of ordinary size (`ORDINARY`) do
   not queue with large ones: a sixteenth of the limit is kept for them beside it. The total exceeds
   the limit by at most that, one request and a window. A connection without an incomplete frame
   first receives a few kilobytes only.
4. While a connection waits for memory, those that hold it have a time limit: a client that sends
   nothing for `STALLED_S`, or needs longer than `LONGEST_S` for its frame, loses its connection
   (`is_overdue`). When the next has waited for `PATIENCE_S`, those that sent more slowly than
   `HURRY` while they could lose their connections at once, whether they wait themselves or not,
   until there is room for its frame (`payers`).
5. At most `LANES` connections hold windows at the same time. So a thousand clients that send large
   requests at once delay the small requests of others by a few receive calls, not by a thousand.
6. The bytes that clients hold decide which is next and which pays (`broker.fairness`): next is the
   address that holds least, and in it the connection that has waited longest; first to pay is the
   address that holds most, and in it the connection that holds most.

Even if memory is not short, a frame that comes more slowly than `SLOWEST` bytes a second counts as
idle time, which `connections.max.idle.ms` limits: a byte now and then does not keep a connection
open. Event loop only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker.fairness import NOBODY, Client, LeastFirst, Shares
from storage.waits import Signal

SMALL_FRAME: Final = 16 * 1024
WINDOW: Final = 1024 * 1024
"""The most that one receive call adds to a counted frame."""
STALLED_S: Final = 5.0
LONGEST_S: Final = 30.0
PATIENCE_S: Final = 1.0
HURRY: Final = 1024 * 1024
"""Bytes a second, over at least `PATIENCE_S`."""
LANES: Final = 8
ORDINARY: Final = WINDOW * 5 // 4
"""A producer's `max.request.size` is a mebibyte by default, and so is `message.max.bytes`."""
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

    __slots__ = (
        "_ahead",
        "_ahead_from",
        "_holds",
        "_lanes",
        "_large_first",
        "_lines",
        "_shares",
        "_short",
        "held",
        "limit",
    )

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._ahead: FrameHold | None = None
        """The connection's hold that may go on although no memory is left; it held `_ahead_from`
        bytes when it began to."""
        self._ahead_from = 0
        self._lanes = LANES
        """Free lanes."""
        self._shares = Shares()
        self._holds: dict[FrameHold, None] = {}
        """Those that hold memory."""
        self._lines: list[LeastFirst[FrameHold]] = [LeastFirst(self._shares) for _ in range(2)]
        """Those that wait with frames of ordinary size, and with larger ones."""
        self._large_first = False
        self._short: Signal[None] = Signal()

    @property
    def waited_for(self) -> bool:
        """Whether a connection waits because no memory is left."""
        return self.held >= self.limit and any(self._lines)

    def may_take(self, hold: "FrameHold") -> bool:
        """Whether `hold` may have a window now; if so it takes a lane.

        The one that goes on without memory needs no lane.
        """
        if self._ahead is hold:
            return True
        if not self._has_room(hold):
            return self._go_ahead(hold)
        if not hold.in_lane:
            if not self._lanes:
                return False
            self._lanes -= 1
            hold.in_lane = True
        return True

    def _has_room(self, hold: "FrameHold") -> bool:
        if hold.wanted > ORDINARY:
            return self.held < self.limit
        above = 0 if self._ahead is None else self._ahead.counted - self._ahead_from
        return self.held - above < self.limit * 17 // 16

    def _go_ahead(self, hold: "FrameHold") -> bool:
        if self._ahead is None:
            self._ahead, self._ahead_from = hold, hold.counted
        return self._ahead is hold

    def give_lane_back(self) -> None:
        """Free a connection's lane and wake the next one."""
        self._lanes += 1
        self.wake_next()

    async def wait(self, hold: "FrameHold") -> None:
        """Wait until it is worth calling `may_take` again."""
        line = self._lines[hold.wanted > ORDINARY]
        if self.held >= self.limit:
            self._short.fire()
        await line.wait(hold, self.wake_next, parked=True)

    async def wait_short(self) -> None:
        """Wait until a connection waits because no memory is left."""
        while not self.waited_for:
            self._short = Signal()
            await self._short

    def relieve(self, now: float) -> int:
        """End connections if there is a next one that has waited too long (rule 4); how many."""
        for line in self._lines:
            following = line.next()
            if following is not None and following.who.is_kept_waiting(now):
                payers = self.payers(following.who, now)
                for payer in payers:
                    payer.give_up()
                if payers:
                    return len(payers)
        return 0

    def payers(self, following: "FrameHold", now: float) -> "list[FrameHold]":
        """The connections that have to end so that `following` can go on, the greediest first.

        Half of the limit is made free at most, as the frame may never come.
        """
        if self._has_room(following):
            return []
        slow = [
            hold
            for hold in self._holds
            if hold is not following and not hold.is_whole and hold.is_slow(now)
        ]
        slow.sort(key=lambda hold: self._shares.rank(hold.client), reverse=True)
        missing = self.held - self.limit + min(following.wanted, self.limit // 2)
        payers = []
        for hold in slow:
            if missing > 0:
                missing -= hold.counted
                payers.append(hold)
        return payers

    def change(self, hold: "FrameHold", before: int, after: int) -> None:
        """Change what `hold` holds from `before` to `after` bytes."""
        self._shares.add(hold.client, after - before)
        self.held += after - before
        if after:
            self._holds[hold] = None
        else:
            self._holds.pop(hold, None)
        if after < before:
            self.wake_next()

    def wake_next(self) -> None:
        """Wake the next one, if there is memory and a lane for it."""
        if not self._lanes:
            return
        for line in reversed(self._lines) if self._large_first else self._lines:
            following = line.next()
            if following is not None and (self._ahead is None or self._has_room(following.who)):
                line.admit(following)
                self._large_first = line is self._lines[0]
                return

    def leave(self, hold: "FrameHold") -> None:
        """`hold` no longer has a frame under way."""
        if self._ahead is hold:
            self._ahead = None
        self.wake_next()

    def statistics(self) -> FrameMemoryStatistics:
        """A snapshot."""
        return FrameMemoryStatistics(held=self.held, waiting=sum(map(len, self._lines)))


class FrameHold:
    """The memory of one connection's incomplete frame, if any. Times are monotonic seconds."""

    __slots__ = (
        "_began",
        "_marked",
        "_marked_at",
        "_memory",
        "_progressed",
        "_since",
        "_was_slow",
        "arrived",
        "client",
        "counted",
        "give_up",
        "in_lane",
        "wanted",
    )

    def __init__(
        self,
        memory: FrameMemory,
        client: Client = NOBODY,
        give_up: Callable[[], object] = lambda: None,
    ) -> None:
        """`give_up` ends the connection."""
        self._memory = memory
        self.client = client
        self.give_up = give_up
        self.wanted = 0
        """Size of the frame; 0 if none is under way."""
        self.arrived = 0
        self.in_lane = False
        self.counted = 0
        """Bytes that it holds of the memory."""
        self._began = 0.0
        self._progressed = 0.0
        self._since: float | None = None
        """When it began to wait; None if it does not."""
        self._marked_at = 0.0
        """When the second began over which its speed is measured; `_marked` had arrived then."""
        self._marked = 0
        self._was_slow = False
        """In the last such second."""

    @property
    def address(self) -> str:
        """The client's."""
        return self.client.address

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there, and it is in work."""
        return self.arrived >= self.wanted

    def is_kept_waiting(self, now: float) -> bool:
        """Whether it has waited for `PATIENCE_S`."""
        return self._since is not None and now - self._since >= PATIENCE_S

    def is_slow(self, now: float) -> bool:
        """Whether it comes more slowly than `HURRY`, all in all or of late (rule 4)."""
        until = now if self._since is None else self._since
        age = until - self._began
        if age > PATIENCE_S and self.arrived < age * HURRY:
            return True
        return self._was_slow or self._is_slow_since_mark(until, self.arrived)

    def _is_slow_since_mark(self, now: float, arrived: int) -> bool:
        lasted = now - self._marked_at
        return lasted > PATIENCE_S and arrived - self._marked < lasted * HURRY

    @property
    def is_counted(self) -> bool:
        """Whether a frame is under way that is not small (rule 1)."""
        return self.wanted > SMALL_FRAME

    def note(self, wanted: int, arrived: int, now: float) -> None:
        """Note that `arrived` of the frame's `wanted` bytes have come, the last one at `now`."""
        if not self.wanted:
            self._began = self._marked_at = now
            self._marked, self._was_slow = 0, False
        elif now - self._marked_at > PATIENCE_S:
            self._was_slow = self._is_slow_since_mark(now, arrived)
            self._marked_at, self._marked = now, arrived
        self._progressed = now
        self.wanted, self.arrived = wanted, arrived
        if wanted > SMALL_FRAME:
            self._count(arrived)

    def received(self, have: int) -> None:
        """Free the lane if the buffer, with its `have` bytes, holds the whole frame."""
        if have >= self.wanted:
            self.arrived = self.wanted
            self._leave_lane()

    def settle(self) -> None:
        """Give window and lane back, because nothing more has come or the turn is over."""
        self._leave_lane()
        if self.counted > self.arrived:
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
        since = self._since = monotonic()
        try:
            await self._memory.wait(self)
        finally:
            self._since = None
        now = monotonic()
        self._began += now - since
        self._progressed += now - since
        self._marked_at, self._marked = now, self.arrived

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
            self.counted > 0
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
        before, self.counted = self.counted, size
        if size != before:
            self._memory.change(self, before, size)
