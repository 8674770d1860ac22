"""Ends connections that hold something which others need, and do nothing with it.

* Idle and stuck ones, after `connections.max.idle.ms`.
* Those whose requests come too slowly, while others wait for the memory (`frame_memory`, rule 4).
* Those whose clients take no reply, while all connections keep far too much (`backlog`, rule 3).

One look at all connections, every few seconds, costs less than a timer for each receive. There may
be tens of thousands, so the look is work that pauses; a connection may be gone after a pause.
"""

import logging
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

import trio

from broker.fairness import Shares
from broker.network.activity import Ending
from broker.network.backlog import UNREAD_S, return_memory
from broker.network.connection import Connection, ConnectionServices
from broker.network.frame_memory import PATIENCE_S, STALLED_S
from storage.waits import PAUSE, call

logger = logging.getLogger(__name__)

_LOOKS_PER_IDLE_TIME: Final = 10
_LONGEST_PERIOD_S: Final = 5.0
_SHORTEST_PERIOD_S: Final = 0.05


class Sweeper:
    """Sweeps the connections of one broker. Event loop only."""

    def __init__(
        self,
        connections: Mapping[Connection, object],
        services: ConnectionServices,
        max_idle_s: float | None,
    ) -> None:
        """`connections` are those that are open now, the oldest first. `max_idle_s` None: none is
        closed as idle."""
        self._connections = connections
        self._services = services
        self._max_idle_s = max_idle_s
        self._driver = services.requests.driver
        self._clock = services.requests.clock
        self.idle_closed = 0
        self.overdue_closed = 0
        """Closed because others waited for the memory of their unfinished requests."""
        self.unread_closed = 0
        """Closed because their clients took no reply."""

    async def run(self) -> None:
        """Sweep until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._relieve)
            while True:
                await self._clock.sleep(self._period())
                await self._driver.run(self._look())

    def _period(self) -> float:
        period = _LONGEST_PERIOD_S
        if self._max_idle_s is not None:
            shortened = max(self._max_idle_s / _LOOKS_PER_IDLE_TIME, _SHORTEST_PERIOD_S)
            period = min(period, shortened)
        return min(period, STALLED_S / 4) if self._services.frames.waited_for else period

    async def _look(self) -> None:
        now = self._clock.monotonic()
        idle_s, backlog = self._max_idle_s, self._services.backlog
        overdue = 0
        for connection in list(self._connections):
            if connection not in self._connections:
                continue
            if connection.check_overdue(now):
                overdue += 1
            elif idle_s is not None and connection.check_idle(now, idle_s):
                self.idle_closed += 1
                logger.debug("Closed idle connection %s", connection.info.connection_id)
            await PAUSE
        self._note_overdue(overdue)
        if backlog.excess > 0:
            await self._end_unread(now)
        if backlog.is_over():
            await call(return_memory)

    async def _relieve(self) -> None:
        frames = self._services.frames
        while True:
            await self._driver.run(frames.wait_short())
            await self._clock.sleep(PATIENCE_S / 4)
            self._note_overdue(frames.relieve(self._clock.monotonic()))

    def _note_overdue(self, closed: int) -> None:
        if closed:
            self.overdue_closed += closed
            logger.warning(
                "Closed %d connections whose requests come too slowly: they hold memory that "
                "others wait for (incomplete.request.max.bytes=%d)",
                closed,
                self._services.frames.limit,
            )

    async def _end_unread(self, now: float) -> None:
        """Close connections that are unread until there is room, first those of clients that keep
        most."""
        keeps = Shares()
        for connection in list(self._connections):
            keeps.add(connection.info.client, connection.kept)
            await PAUSE
        unread: list[tuple[tuple[float, ...], Connection]] = []
        for connection in list(self._connections):
            if connection.is_unread(now, UNREAD_S):
                rank = tuple(-part for part in keeps.rank(connection.info.client))
                heappush(unread, (rank, connection))
            await PAUSE
        backlog = self._services.backlog
        excess, closed = backlog.excess, 0
        while unread and excess > 0:
            _, connection = heappop(unread)
            if connection in self._connections and connection.is_unread(now, UNREAD_S):
                excess -= connection.kept
                connection.push_out(Ending.UNREAD)
                closed += 1
            await PAUSE
        self.unread_closed += closed
        if closed:
            logger.warning(
                "Closed %d connections whose clients do not take their replies: all together "
                "kept more than %d MB",
                closed,
                backlog.most_ever >> 20,
            )
