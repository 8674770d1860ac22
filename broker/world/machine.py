"""`Workers` of a real machine: threads for work that waits, child processes for work that computes.

A child process is started by the first work for it (a broker that cleans nothing has none), runs at
a low priority, and stays. Children are spawned, not forked: a fork would inherit sockets and locks.
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
"""Priority of the shared children: below the broker itself, as only some requests wait for them."""
LOWEST: Final = 19
"""Priority of a hand's child: below the others, as no request waits for it."""


class MachineWorkers:
    """`Workers` with the threads of trio and a pool of child processes."""

    def __init__(
        self, *, processes: int = 1, hands_in_threads: bool = False, nice: int = NICE
    ) -> None:
        """`hands_in_threads`: hands work on memory of this process. `nice`: children's priority."""
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
        """See `Workers`. Without a `limiter`, trio's default one applies."""
        return await trio.to_thread.run_sync(work, *values, limiter=limiter)

    async def in_process(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Workers`. While it waits for a free process, the call can be cancelled."""
        from concurrent.futures.process import BrokenProcessPool

        try:
            async with self._free:
                pool = self._pool or await self._open_pool()
                future = pool.submit(work, *values)
                with trio.CancelScope(shield=True):
                    await _wait_done(future)
                return future.result()
        except BrokenProcessPool as error:
            self.close()  # the next call starts a new pool
            raise WorkerDied(str(error)) from error

    async def _open_pool(self) -> "ProcessPoolExecutor":
        """Make the pool in a thread: imports and the first process take too long for the loop."""
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
    """A `Hand` with its own pool of one child process."""

    def __init__(self) -> None:
        self._pool = MachineWorkers(nice=LOWEST)

    async def call(self, work: Callable[..., Result], *values: Any) -> Result:
        """See `Hand`."""
        return await self._pool.in_process(_call_with_state, work, *values)

    def close(self) -> None:
        """See `Hand`."""
        self._pool.close()


_STATE: Final[dict[str, Any]] = {}
"""In the child of a `ProcessHand`: the state that is kept between calls."""


def _call_with_state(work: Callable[..., Result], *values: Any) -> Result:
    """Runs in the child."""
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
    """Runs in a child, before its first work."""
    os.nice(nice)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A broker that is killed cannot end its children: without this they would wait for ever.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


async def _wait_done(future: "Future[Any]") -> None:
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()
    future.add_done_callback(lambda _: token.run_sync_soon(done.set))
    await done.wait()
