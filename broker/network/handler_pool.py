"""The handler workers: `num.io.threads` tasks, each of which makes one call of a request at a time.

A worker takes a call from the `RequestChannel` and has it made in a thread. It waits for nothing
else: if it waited for a lock, the holder of the lock might wait for a worker. The rest of a handler
runs in the turn of its connection (`RequestHandling.handle`).
"""

from dataclasses import dataclass
from typing import Any

import trio

from broker.fairness import CLIENT
from broker.network.request_channel import Caller, RequestChannel
from broker.world.driver import Driver
from storage.clock import Clock
from storage.waits import Call


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
    """The workers of one request channel. Event loop only."""

    def __init__(
        self, channel: RequestChannel, driver: Driver, *, workers: int, clock: Clock
    ) -> None:
        self._channel = channel
        self._driver = driver
        self._workers = workers
        self._surplus = 0
        """Number of workers that must end when they are free."""
        self._nursery: trio.Nursery | None = None
        self._clock = clock
        self._at_work: dict[Caller, float] = {}
        """The callers whose calls workers make now, with the time at which each began."""
        self._busy_s = 0.0
        """Seconds spent on finished calls."""

    async def run(self) -> None:
        """Serve until cancelled, or until all calls of a closed channel are made."""
        try:
            async with trio.open_nursery() as self._nursery:
                for _ in range(self._workers):
                    self._nursery.start_soon(self._worker)
        finally:
            self._channel.drop()

    def resize(self, workers: int) -> None:
        """Change the number of workers; surplus ones end after their next call."""
        added = workers - self._workers
        self._workers = workers
        self._surplus -= added
        if self._nursery is not None:
            while self._surplus < 0:
                self._surplus += 1
                self._nursery.start_soon(self._worker)

    async def _worker(self) -> None:
        while (taken := await self._channel.take()) is not None:
            await self._call(*taken)
            if self._surplus > 0:
                self._surplus -= 1
                return

    async def _call(self, call: "Call[Any]", caller: Caller) -> None:
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
            queued=len(self._channel),
            busy_s=self._busy_s + sum(now - started for started in self._at_work.values()),
        )
