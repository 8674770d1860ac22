"""Work that is done aside: by a task of its own instead of a handler worker.

A request that waits for others, or takes long, would occupy one of the few workers, and appends
would wait for it. Rules

* A connection has one request in work, so there are at most as many tasks as connections, plus
  those that must be finished although their client is gone (`broker.network.unanswered`).
* Each task begins behind all other long work (`wait_for_turn`).
* The broker's stop closes connections first, so no client waits for the remaining work: `close`
  cancels it and waits for its threads. The components that it uses are stopped afterwards.
"""

import trio

from broker.network.unanswered import Unanswered, is_asleep
from broker.world.driver import Driver
from broker.world.turns import wait_for_turn
from storage.clock import Clock
from storage.waits import Signal


class Asides:
    """The tasks that do work aside. One per broker; event loop only."""

    def __init__(self, driver: Driver, clock: Clock) -> None:
        self._driver = driver
        self._clock = clock
        self._nursery: trio.Nursery | None = None
        self._ended = trio.Event()
        self._working = 0

    @property
    def working(self) -> int:
        """How many tasks are begun and not done."""
        return self._working

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks until cancelled or closed. Called once."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(trio.sleep_forever)
                task_status.started()
        finally:
            self._nursery = None
            self._ended.set()

    async def close(self) -> None:
        """Take no more work; returns when all tasks are cancelled or finished."""
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
            await self._ended.wait()

    def begin(self, work: Unanswered) -> Signal[None]:
        """Go on with `work` until it is done or parked; returns what fires then.

        Raises ClosedResourceError before the start and at the stop; the work is dropped.
        """
        if self._nursery is None or self._nursery.cancel_scope.cancel_called:
            work.close()
            raise trio.ClosedResourceError("nothing is done aside before the start or at the stop")
        self._working += 1
        gone_on: Signal[None] = Signal()
        self._nursery.start_soon(self._go_on, work, gone_on, name="aside")
        return gone_on

    async def _go_on(self, work: Unanswered, gone_on: Signal[None]) -> None:
        try:
            await work.go_on(self._driver, self._clock, is_asleep, wait_for_turn)
            gone_on.fire()
        finally:
            if not gone_on.fired:
                work.close()
            self._working -= 1
