"""The parts that the requests of all connections share: routes, quotas, the handler workers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import trio

from broker.api_facts import Served
from broker.deadlines import Deadlines
from broker.network.handler_pool import HandlerPool, HandlerPoolStatistics
from broker.network.large_messages import LargeMessages
from broker.network.request_channel import RequestChannel
from broker.network.request_metrics import RequestMetrics, RequestTimes
from broker.network.routes import RouteTable
from broker.quotas.quotas import Quotas
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.workers import InlineWorkers
from protocol.api_keys import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatistics:
    """Numbers for metrics and tests."""

    pool: HandlerPoolStatistics
    requests: Mapping[str, RequestTimes]
    """By API, for APIs that were requested at least once."""


class RequestServices:
    """See the module."""

    def __init__(
        self,
        served: Mapping[ApiKey, Served],
        *,
        clock: TaskClock,
        driver: Driver | None = None,
        workers: int = 8,
        unsupported_version_reply: Callable[[], Any] | None = None,
        quotas: Quotas | None = None,
        deadlines: Deadlines | None = None,
    ) -> None:
        """`driver` serves the waits of handlers; the default makes calls in threads and child
        processes at once. `deadlines` end throttles by `quotas`.

        `unsupported_version_reply` makes the v0 ApiVersions body for an unknown version.
        """
        self.clock = clock
        self.driver = driver or Driver(InlineWorkers(), clock)
        self.watch = self.driver.watch
        """Notes requests that block the loop for long."""
        self.quotas = quotas or Quotas(clock)
        self.deadlines = deadlines or Deadlines(clock)
        self._metrics: dict[int, RequestMetrics] = {}
        self._unsupported_version_reply = unsupported_version_reply
        self.routes: Final = self.table(served)
        """The default table of a connection."""
        self.large = LargeMessages(clock)
        self.channel = RequestChannel()
        self.pool = HandlerPool(self.channel, self.driver, workers=workers, clock=clock)

    def table(self, served: Mapping[ApiKey, Served]) -> RouteTable:
        """Make another table, for connections that may use other APIs (`broker.network.routes`)."""
        return RouteTable(
            served,
            self._metrics,
            unsupported_version_reply=self._unsupported_version_reply,
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the workers until cancelled, or until all queued calls are made after `close`."""
        task_status.started()
        await self.pool.run()

    def close(self) -> None:
        """Take no new calls."""
        self.channel.close()

    def statistics(self) -> RequestStatistics:
        """A snapshot."""
        now = self.clock.monotonic()
        return RequestStatistics(
            pool=self.pool.statistics(),
            requests={m.name: m.snapshot(now) for m in self._metrics.values()},
        )
