"""Between connections and handlers: the tables of routes, and who goes on with work that waits.

A handler takes its first step in the connection's own turn, because a task switch would cost more
than most requests. What that does not finish, the `HandlerPool` or the `Asides` go on with
(`broker.network.unanswered`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import trio

from broker.api_facts import Served
from broker.deadlines import Deadlines
from broker.network.asides import Asides
from broker.network.handler_pool import HandlerPool, HandlerPoolStatistics
from broker.network.large_messages import LargeMessages
from broker.network.request_metrics import RequestMetrics, RequestTimes
from broker.network.routes import RouteTable
from broker.quotas.quotas import Quotas
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
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
        served: Mapping[ApiKey, Served],
        *,
        clock: TaskClock,
        driver: Driver | None = None,
        workers: int = 8,
        queued_max: int = 500,
        unsupported_version_reply: Callable[[], Any] | None = None,
        quotas: Quotas | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        """`driver` runs what handlers wait for; by default calls in threads and child processes are
        made at once. `deadlines` end throttles by `quotas`.

        `unsupported_version_reply` makes the v0 ApiVersions body for an unknown version.
        """
        self.clock = clock
        self.driver = driver or Driver(InlineWorkers(), clock)
        self.watch = self.driver.watch
        """Notes requests that block the loop for long."""
        self.quotas = quotas or Quotas(clock)
        self.deadlines = deadlines or Deadlines(clock)
        self._metrics: dict[int, RequestMetrics] = {}
        self.routes: Final = self.table(served, unsupported_version_reply=unsupported_version_reply)
        """The default table of a connection."""
        self.large = LargeMessages(clock)
        self.pool = HandlerPool(self.driver, workers=workers, queued_max=queued_max, clock=clock)
        self.asides = Asides(self.driver, clock)

    def table(
        self,
        served: Mapping[ApiKey, Served],
        *,
        unsupported_version_reply: Callable[[], Any] | None = None,
    ) -> RouteTable:
        """Make another table, for connections that may use other APIs (`broker.network.routes`)."""
        return RouteTable(
            served,
            self._metrics,
            unsupported_version_reply=unsupported_version_reply,
        )

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
