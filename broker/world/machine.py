"""`Workers` of a real machine: threads for what waits, child processes for what computes.

Child processes are started when the first work comes (a broker that cleans nothing has none), with
a low priority, and stay. They are spawned, not forked: a fork would inherit sockets and locks.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from broker.world.workers import Hand, ThreadHand, WorkerDied

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Result = TypeVar("Result")

NICE: Final = 10
"""Requests come before work that some of them wait for,"""
LOWEST: Final = 19
"""and both before what a hand does: nobody waits for it."""


class MachineWorkers:
    """`Workers` with the threads of trio and a pool of child processes."""

    def __init__(
        self, *, processes: int = 1, hands_in_threads: bool = False, nice: int = NICE
    ) -> None:
        """`hands_in_threads`: what they work on is memory of this process. `nice`: of children."""
        self._processes = processes
        self._nice = nice
        self._hands_in_threads = hands_in_threads
        self._pool: ProcessPoolExecutor | None = None
        self._free = trio.CapacityLimiter(processes)
        self._opening = trio.Lock()

    async def in_thread(
        self,
        work: Callable[..., Result],
        *values: Any,
        limiter: trio.CapacityLimiter | None = None,
    ) -> Result:
        """See `Workers`. Without a `limiter` trio's own counts."""
        return await trio.to_thread.run_sync(work, *values, limiter=limiter)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`. Who waits for a free process can be cancelled, and has sent nothing."""
        from concurrent.futures.process import BrokenProcessPool

        try:
            async with self._free:
                pool = self._pool or await self._open_pool()
                future = pool.submit(work, *values)
                with trio.CancelScope(shield=True):
                    await _wait_done(future)
                return future.result()
        except BrokenProcessPool as error:
            self.close()  # the next work gets new ones
            raise WorkerDied(str(error)) from error

    async def _open_pool(self) -> "ProcessPoolExecutor":
        """In a thread: imports, and the start of a process, are too long for the loop."""
        async with self._opening:
            pool = self._pool
            if pool is None:
                pool = self._pool = await trio.to_thread.run_sync(
                    _new_pool, self._processes, self._nice
                )
        return pool

    def hire(self) -> Hand:
        """See `Workers`."""
        return ThreadHand(self) if self._hands_in_threads else ProcessHand()

    def close(self) -> None:
        """End the child processes; may be called at any time, from the loop."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


class ProcessHand:
    """A `Hand`: a pool of one process, of its own."""

    def __init__(self) -> None:
        self._pool = MachineWorkers(nice=LOWEST)

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Hand`."""
        return await self._pool.in_process(_call_with_state, work, *values)

    def close(self) -> None:
        """See `Hand`."""
        self._pool.close()


_STATE: Final[dict[str, Any]] = {}
"""In the child of a `ProcessHand`: what lives between two calls."""


def _call_with_state(work: Callable[..., Result], *values: Any) -> Result:
    """In a child."""
    return work(_STATE, *values)


def _new_pool(processes: int, nice: int) -> "ProcessPoolExecutor":
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=_begin_child, initargs=(nice,)
    )
    pool.submit(os.getpid)  # starts the first process
    return pool


def _begin_child(nice: int) -> None:
    """In a child, before its first work."""
    os.nice(nice)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A killed broker cannot end its children, which would wait for their next work for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


async def _wait_done(future: "Future[Any]") -> None:
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()
    future.add_done_callback(lambda _: token.run_sync_soon(done.set))
    await done.wait()
