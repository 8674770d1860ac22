"""The handler workers: `num.io.threads` tasks that run what may wait.

A request whose handler returned a coroutine is put into one bounded queue (`queued.max.requests`)
and run by the next free worker. When the queue is full the connection waits, and so stops reading:
that is the back pressure on clients. A connection that ends does not cancel its work: what a
client asked for and a worker began is finished (an append half done is nobody's wish).
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
    """Requests that wait for a worker."""
    busy_s: float
    """Working time of all workers since the start, with that of the requests in work."""


class HandlerPool:
    """A bounded queue and its workers."""

    def __init__(self, *, workers: int, queued_max: int, clock: Clock, watch: LoopWatch) -> None:
        self._workers = workers
        self._watch = watch
        self._surplus = 0
        """Workers to end when they are free."""
        self._nursery: trio.Nursery | None = None
        self._clock = clock
        self._send, self._receive = trio.open_memory_channel[Work](queued_max)
        self._at_work: dict[Work, None] = {}
        self._busy_s = 0.0
        """Of finished work."""

    async def submit(self, coroutine: Coroutine[Any, Any, Any], what: Callable[[], str]) -> Work:
        """Queue it (waits while the queue is full) and wait until it is finished."""
        work = Work(coroutine, what)
        try:
            await self._send.send(work)
        except BaseException:
            coroutine.close()
            raise
        await work.wait_reply()
        return work

    async def run(self) -> None:
        """Serve until cancelled, or until `close` and everything queued is done."""
        try:
            async with trio.open_nursery() as self._nursery:
                for _ in range(self._workers):
                    self._nursery.start_soon(self._worker)
        finally:
            self._drop_queued()

    def _drop_queued(self) -> None:
        """Cancelled: what no worker has begun, none will."""
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:
                self._receive.receive_nowait().coroutine.close()

    def resize(self, workers: int) -> None:
        """Have so many workers from now on; those too many end after their next request."""
        added = workers - self._workers
        self._workers = workers
        self._surplus -= added
        if self._nursery is not None:
            while self._surplus < 0:
                self._surplus += 1
                self._nursery.start_soon(self._worker)

    def close(self) -> None:
        """No new work; workers end when the queue is empty."""
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
