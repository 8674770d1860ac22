"""The handler workers: `num.io.threads` tasks that run the coroutines of handlers.

A coroutine of an API that producers and consumers wait for (`routes`) is put into one bounded queue
(`queued.max.requests`) and run by the next free worker. When the queue is full the connection
waits and does not receive: that is the back pressure on clients. The end of a connection does not
cancel its work, because an append must not stay half done.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import trio

from broker.network.work import Work
from broker.world.loop_watch import LoopWatch
from storage.clock import Clock


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

    def __init__(self, *, workers: int, queued_max: int, clock: Clock, watch: LoopWatch) -> None:
        self._workers = workers
        self._watch = watch
        self._surplus = 0
        """How many workers must end when they are free."""
        self._nursery: trio.Nursery | None = None
        self._clock = clock
        self._send, self._receive = trio.open_memory_channel[Work](queued_max)
        self._at_work: dict[Work, None] = {}
        self._busy_s = 0.0
        """Seconds spent on finished work."""

    async def submit(self, coroutine: Coroutine[Any, Any, Any], what: Callable[[], str]) -> Work:
        """Queue the coroutine, waiting while the queue is full, and wait until it is finished."""
        work = Work(coroutine, what)
        try:
            await self._send.send(work)
        except BaseException:
            coroutine.close()
            raise
        await work.wait_reply()
        return work

    async def run(self) -> None:
        """Serve until cancelled, or until all queued work is done after `close`."""
        try:
            async with trio.open_nursery() as self._nursery:
                for _ in range(self._workers):
                    self._nursery.start_soon(self._worker)
        finally:
            self._drop_queued()

    def _drop_queued(self) -> None:
        """Close the queued coroutines, which no worker will begin any more."""
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._receive.receive_nowait().coroutine.close()

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
        async for work in self._receive:
            self._at_work[work] = None
            try:
                await work.perform(self._clock, self._watch)
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
