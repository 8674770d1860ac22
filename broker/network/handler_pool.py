"""The handler workers: `num.io.threads` tasks that make the calls of requests in threads.

The calls of an API that producers and consumers use all the time (`Route.in_workers`) go into one
queue, and the next free worker makes the call. A worker makes calls and waits for nothing else,
because the holder of what it waited for might need a worker, too. A connection has one request in
work and receives nothing meanwhile, so the queue is not longer than there are connections; Kafka's
`queued.max.requests` bounds a queue into which its connections go on reading.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import trio

from broker.fairness import CLIENT, Client
from broker.network.endings import ConnectionEnded
from broker.world.driver import Driver
from storage.clock import Clock
from storage.waits import Call


class Caller(Protocol):
    """A connection whose request waits for a call."""

    client: Client
    started: float | None
    """The time at which a worker began the call, in monotonic seconds."""

    def answered(self, answer: Any, error: BaseException | None) -> None:
        """The call is done, with an answer or an error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerPoolStatistics:
    """Numbers for metrics and tests."""

    workers: int
    busy: int
    queued: int
    """Calls that wait for a worker."""
    busy_s: float
    """Working time of all workers since the start, including calls in work."""


class HandlerPool:
    """A queue of calls and its workers."""

    def __init__(self, driver: Driver, *, workers: int, clock: Clock) -> None:
        self._driver = driver
        self._workers = workers
        self._surplus = 0
        """Number of workers that must end when they are free."""
        self._nursery: trio.Nursery | None = None
        self._clock = clock
        self._queue: deque[tuple[Call[Any], Caller]] = deque()
        self._idle = trio.lowlevel.ParkingLot()
        self._at_work: dict[Caller, float] = {}
        """The callers whose calls workers make now, with the time at which each began."""
        self._is_closed = False
        self._busy_s = 0.0
        """Seconds spent on finished calls."""

    def add(self, call: "Call[Any]", caller: Caller) -> None:
        """Have a worker make the call, and then call `caller.answered`.

        The error is ConnectionEnded if the workers have ended or end before.
        """
        if self._is_closed:
            caller.answered(None, ConnectionEnded())
            return
        self._queue.append((call, caller))
        self._idle.unpark()

    async def run(self) -> None:
        """Serve until cancelled, or until all queued calls are made after `close`."""
        try:
            async with trio.open_nursery() as self._nursery:
                for _ in range(self._workers):
                    self._nursery.start_soon(self._worker)
        finally:
            self._drop_queued()

    def _drop_queued(self) -> None:
        """End the callers whose calls no worker will make any more."""
        self.close()
        while self._queue:
            self._queue.popleft()[1].answered(None, ConnectionEnded())

    def resize(self, workers: int) -> None:
        """Change the number of workers; surplus ones end after their next call."""
        added = workers - self._workers
        self._workers = workers
        self._surplus -= added
        if self._nursery is not None:
            while self._surplus < 0:
                self._surplus += 1
                self._nursery.start_soon(self._worker)

    def close(self) -> None:
        """Take no new calls; the workers end when none is left."""
        self._is_closed = True
        self._idle.unpark_all()

    async def _worker(self) -> None:
        while self._queue or not self._is_closed:
            if not self._queue:
                await self._idle.park()
                continue
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._make(*self._queue.popleft())
            if self._surplus > 0:
                self._surplus -= 1
                return

    async def _make(self, call: "Call[Any]", caller: Caller) -> None:
        self._at_work[caller] = caller.started = started = self._clock.monotonic()
        CLIENT.set(caller.client)
        answer: Any = None
        error: Exception | None = None
        try:
            answer = await self._driver.serve(call)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is for the caller
            error = failure
        finally:
            del self._at_work[caller]
            self._busy_s += self._clock.monotonic() - started
        caller.answered(answer, error)

    def statistics(self) -> HandlerPoolStatistics:
        """A snapshot."""
        now = self._clock.monotonic()
        return HandlerPoolStatistics(
            workers=self._workers,
            busy=len(self._at_work),
            queued=len(self._queue),
            busy_s=self._busy_s + sum(now - started for started in self._at_work.values()),
        )
