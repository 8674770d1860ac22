"""Between connections and handlers: the tables of routes, and the tasks for work that waits.

A handler runs in the connection's own task, because a task switch would cost more than most
requests. A coroutine that it returns goes to the `HandlerPool` or to the `Asides`, an `Aside` to
the `Asides`.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

import trio

from broker.network.asides import Asides
from broker.network.handler_pool import HandlerPool, HandlerPoolStatistics
from broker.network.large_messages import LargeMessages
from broker.network.request_metrics import RequestMetrics, RequestTimes
from broker.network.routes import Route, RouteTable
from broker.network.work import Work
from broker.request import Aside, Handler
from broker.world.clock import Clock
from broker.world.loop_watch import LoopWatch
from protocol.api_keys import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestChannelStatistics:
    """Numbers for metrics and tests."""

    pool: HandlerPoolStatistics
    asides: int
    """Requests in work by tasks of their own, beside the workers."""
    requests: Mapping[str, RequestTimes]
    """By API, of those that were requested at least once."""


class RequestChannel:
    """The tables of handlers, the pool of workers, and the tasks aside."""

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler],
        versions: Mapping[ApiKey, tuple[int, int]],
        *,
        clock: Clock,
        workers: int = 8,
        queued_max: int = 500,
        unsupported_version_reply: Callable[[], Any] | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        """`versions`: lowest and highest served version, by API.

        `unsupported_version_reply` makes the v0 ApiVersions body for an unknown version.
        """
        self.clock = clock
        self.watch = watch or LoopWatch(clock)
        """Notes requests that block the loop for long."""
        self._metrics: dict[int, RequestMetrics] = {}
        self.routes: Final = self.table(
            handlers, versions, unsupported_version_reply=unsupported_version_reply
        )
        """The default table of a connection."""
        self.large = LargeMessages(clock)
        self.pool = HandlerPool(
            workers=workers, queued_max=queued_max, clock=clock, watch=self.watch
        )
        self.asides = Asides(clock, self.watch)

    def table(
        self,
        handlers: Mapping[ApiKey, Handler],
        versions: Mapping[ApiKey, tuple[int, int]],
        *,
        unsupported_version_reply: Callable[[], Any] | None = None,
    ) -> RouteTable:
        """Make another table, for connections that may use other APIs (`broker.network.routes`)."""
        return RouteTable(
            handlers,
            versions,
            self._metrics,
            unsupported_version_reply=unsupported_version_reply,
        )

    async def send(
        self, work: Coroutine[Any, Any, Any], route: Route, what: Callable[[], str]
    ) -> Work:
        """Run a handler's coroutine, by a worker or aside, and wait until it is done.

        `what` names it for the log.
        """
        if route.in_workers:
            return await self.pool.submit(work, what)
        return await self.asides.finish(work, what)

    def begin(self, aside: Aside, what: Callable[[], str]) -> Work:
        """Begin the work of `aside`; the returned `Work` is pending."""
        return self.asides.begin(aside, what)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the workers and the tasks aside until cancelled or closed."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.asides.run)
            nursery.start_soon(self.pool.run)
            task_status.started()

    async def close(self) -> None:
        """Take no new work; wait until no task aside is left."""
        self.pool.close()
        await self.asides.close()

    def statistics(self) -> RequestChannelStatistics:
        """A snapshot."""
        now = self.clock.monotonic()
        return RequestChannelStatistics(
            pool=self.pool.statistics(),
            asides=self.asides.working,
            requests={m.name: m.snapshot(now) for m in self._metrics.values()},
        )
