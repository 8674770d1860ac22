"""Answers that take workers' time, or many turns: each is made by a task of its own.

A handler that returned a coroutine would keep one of the handler workers until the answer is there,
and eight such requests would keep all others from being handled. So the request is parked, as one
that waits for data is, and a task completes it. A connection has one request in work, so there are
never more of these tasks than connections. When the client has gone, its task ends at the next
checkpoint.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from broker.request import Pending

logger = logging.getLogger(__name__)

Work = Callable[[], Awaitable[Any]]
"""Makes the reply."""
Failed = Callable[[], Any]
"""Makes the reply that says that the work has a bug."""


class SlowAnswers:
    """One per broker. Event loop only."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None
        self._working = 0

    @property
    def working(self) -> int:
        """How many answers are being made."""
        return self._working

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Make answers until cancelled. Started once, by the server."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def begin(self, work: Work, failed: Failed, pending: Pending | None = None) -> Pending:
        """A reply that comes when `work` is done; `pending` is one that waits for it already."""
        pending = pending or Pending()
        if self._nursery is None:
            pending.complete(failed())
            return pending
        scope = trio.CancelScope()
        pending.on_abandon = scope.cancel
        self._nursery.start_soon(self._make, pending, scope, work, failed, name="slow-answer")
        return pending

    async def _make(
        self, pending: Pending, scope: trio.CancelScope, work: Work, failed: Failed
    ) -> None:
        self._working += 1
        try:
            with scope:
                try:
                    reply = await work()
                except Exception:  # a bug in one answer must not end the broker (decision 7)
                    logger.exception("An answer could not be made")
                    reply = failed()
                pending.complete(reply)
        finally:
            self._working -= 1
