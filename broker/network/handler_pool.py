"""The handler workers: `num.io.threads` tasks that go on with requests.

Work of an API that producers and consumers wait for (`routes`) is put into one bounded queue
(`queued.max.requests`) and taken on by the next free worker, until it is done or must not hold a
worker any longer (`unanswered.is_long`). When the queue is full the connection waits and does not
receive: that is the back pressure on clients.
"""

import math
from contextlib import suppress
from dataclasses import dataclass

import trio

from broker.network.unanswered import Unanswered, is_long
from broker.world.driver import Driver
from storage.clock import Clock
from storage.waits import Lock, Signal

_Queued = tuple[Unanswered, Signal[None]]
"""Work, and what fires when a worker has gone on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerPoolStatistics:
    """Numbers for metrics and tests."""

    workers: int
    busy: int
    queued: int
    """Requests waiting for a worker."""
    busy_s: float
    """Working time of all workers since the start, including requests in work."""


class HandlerPool:
    """A bounded queue and its workers."""

    def __init__(self, driver: Driver, *, workers: int, queued_max: int, clock: Clock) -> None:
        self._driver = driver
        self._workers = workers
        self._surplus = 0
        """How many workers must end when they are free."""
        self._nursery: trio.Nursery | None = None
        self._clock = clock
        self._places = Lock(queued_max)
        self._send, self._receive = trio.open_memory_channel[_Queued](math.inf)
        self._at_work: dict[Unanswered, None] = {}
        self._busy_s = 0.0
        """Seconds spent on finished work."""

    async def go_on(self, work: Unanswered) -> None:
        """Have a worker go on with `work`; wait while the queue is full, and until it has.

        The end of the caller does not end the work once it is queued. Raises ClosedResourceError at
        the stop.
        """
        gone_on: Signal[None] = Signal()
        try:
            await self._places.acquire()
            self._send.send_nowait((work, gone_on))
        except BaseException:
            work.close()
            raise
        await gone_on

    async def run(self) -> None:
        """Serve until cancelled, or until all queued work is done after `close`."""
        try:
            async with trio.open_nursery() as self._nursery:
                for _ in range(self._workers):
                    self._nursery.start_soon(self._worker)
        finally:
            self._drop_queued()

    def _drop_queued(self) -> None:
        """Drop the queued work, which no worker will take on any more."""
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._receive.receive_nowait()[0].close()

    def resize(self, workers: int) -> None:
        """Change the number of workers; surplus ones end after their next request."""
        added = workers - self._workers
        self._workers = workers
        self._surplus -= added
        if self._nursery is not None:
            while self._surplus < 0:
                self._surplus += 1
                self._nursery.start_soon(self._worker)

    def close(self) -> None:
        """Take no new work; the workers end when the queue is empty."""
        self._send.close()

    async def _worker(self) -> None:
        async for work, gone_on in self._receive:
            self._places.release()
            self._at_work[work] = None
            try:
                await work.go_on(self._driver, self._clock, is_long)
                gone_on.fire()
            finally:
                del self._at_work[work]
                self._busy_s += self._clock.monotonic() - work.started
            if self._surplus > 0:
                self._surplus -= 1
                return

    def statistics(self) -> HandlerPoolStatistics:
        """A snapshot."""
        now = self._clock.monotonic()
        return HandlerPoolStatistics(
            workers=self._workers,
            busy=len(self._at_work),
            queued=self._send.statistics().current_buffer_used,
            busy_s=self._busy_s + sum(now - work.started for work in self._at_work if work.started),
        )
