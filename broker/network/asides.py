"""Work that is done aside: by a task of its own instead of a handler worker.

A request that waits for others, or goes in turns, would occupy one of the few workers, and appends
would wait for it. Rules

* A connection has one request in work, so there are at most as many tasks as connections, plus
  those that must be finished although their client is gone.
* Each task begins behind all other long work (`wait_for_turn`), and a step that blocks the loop is
  logged with its name.
* The work of an `Aside` ends with its client: its task is cancelled at its next checkpoint. A step
  that must be finished once begun (an append) shields itself. A handler's coroutine is finished
  even if its client is gone (`broker.request` describes both).
* The broker's stop closes connections first, so no client waits for the remaining work: `close`
  cancels it and waits for shielded steps. The components that it uses are stopped afterwards.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import trio

from broker.network.work import Work
from broker.request import Aside
from broker.world.loop_watch import LoopWatch
from broker.world.turns import wait_for_turn
from storage.clock import Clock


class Asides:
    """The tasks that do work aside. One per broker; event loop only."""

    def __init__(self, clock: Clock, watch: LoopWatch) -> None:
        self._clock = clock
        self._watch = watch
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

    def begin(self, aside: Aside, what: Callable[[], str]) -> Work:
        """Begin the work of `aside`; it ends when its client is gone. Raises ClosedResourceError.

        `what` names it for the log.
        """
        self._check_open()
        work = Work(aside.work(), what)
        scope = trio.CancelScope()
        work.on_abandon = scope.cancel
        return self._begin(work, scope)

    async def finish(self, coroutine: Coroutine[Any, Any, Any], what: Callable[[], str]) -> Work:
        """Run `coroutine` and wait for it; it is finished even if the waiting is cancelled.

        `what` names it for the log. Raises ClosedResourceError.
        """
        try:
            self._check_open()
        except trio.ClosedResourceError:
            coroutine.close()
            raise
        work = self._begin(Work(coroutine, what), trio.CancelScope())
        await work.wait_reply()
        return work

    def _check_open(self) -> None:
        if self._nursery is None or self._nursery.cancel_scope.cancel_called:
            raise trio.ClosedResourceError("nothing is done aside before the start or at the stop")

    def _begin(self, work: Work, scope: trio.CancelScope) -> Work:
        assert self._nursery is not None
        self._working += 1
        self._nursery.start_soon(self._perform, work, scope, name="aside")
        return work

    async def _perform(self, work: Work, scope: trio.CancelScope) -> None:
        try:
            with scope:
                await wait_for_turn()
                await work.perform(self._clock, self._watch)
        finally:
            work.coroutine.close()  # has an effect only if the coroutine was never begun
            self._working -= 1
