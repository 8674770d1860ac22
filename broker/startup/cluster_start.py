"""The start and the stop of a member of a cluster, where they differ from a stand-alone broker's.

`broker.server` calls it, in this order: `open_tree`, `expect_free_id`, `restore_high_watermarks`,
`MemberLife.begin` and `join`; at the stop `hand_over` first, then `leave`, before logs are closed.
Imported when `zookeeper.connect` is set.

Source: `kafka.server.KafkaServer.startup`, `shutdown` (3.9).
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, cast

import trio

from broker.cluster.metadata_store import MetadataStoreError
from broker.membership.cluster_parts import ClusterParts
from broker.membership.registration import advertised_endpoints
from broker.world.clock import TaskClock
from broker.world.driver import Driver
from broker.world.host_name import canonical_host_name
from broker.world.transport import BoundListener
from broker.world.world import World
from broker.zookeeper.registration import expect_free
from broker.zookeeper.settings import ZooKeeperSettings
from broker.zookeeper.zookeeper_store import ZooKeeperStore
from config.broker_config import BrokerConfig
from config.listener import Listener
from storage.log_manager import LogManager
from storage.waits import PAUSE, Work, call

logger = logging.getLogger(__name__)

RESIGN_S: Final = 5.0
"""How long a stop waits until ZooKeeper knows that this broker is not the controller any more. If
it does not answer, the end of the session says so."""


async def open_tree(config: BrokerConfig, world: World) -> ZooKeeperStore:
    """Connect to ZooKeeper. Raises MetadataStoreError, whose text is for the operator."""
    settings = ZooKeeperSettings.of(config)
    if world.open_tree is not None:
        return cast("ZooKeeperStore", await world.open_tree(settings))
    soon = trio.lowlevel.current_trio_token().run_sync_soon
    return await ZooKeeperStore.open(settings, soon)


async def expect_free_id(store: ZooKeeperStore, config: BrokerConfig) -> None:
    """Raise BrokerRegistrationError if another broker of this one's id lives.

    Told by its ports: an earlier process of this broker, whose session has not ended yet, had the
    same. The registration looks again, exactly; but then something is on the disk already.
    """
    ports = {one.port for one in config.advertised_listeners or config.listeners}
    if config.broker_id >= 0 and 0 not in ports:
        await expect_free(store, config.broker_id, ports)


class MemberLife:
    """A member from its start to its stop."""

    def __init__(
        self,
        cluster: ClusterParts,
        config: BrokerConfig,
        driver: Driver,
        clock: TaskClock,
    ) -> None:
        self._clock = clock
        self._cluster = cluster
        self._config = config
        self._driver = driver
        self._scope = trio.CancelScope()
        self._begun = trio.Event()
        self._ended = trio.Event()

    # ---- start

    async def begin(self, services: trio.Nursery) -> None:
        """Have connections to other brokers made from now on; `leave` ends that."""
        await services.start(self._run)

    async def join(self, bound: Sequence[BoundListener]) -> None:
        """Register, and stand for controller. Raises MetadataStoreError."""
        await self._driver.run(self._register(bound))
        self._begun.set()

    async def _register(self, bound: Sequence[BoundListener]) -> None:
        cluster = self._cluster
        listeners = tuple(
            Listener(name=b.name, host=b.host, port=b.port, protocol=b.protocol) for b in bound
        )
        endpoints = await call(
            advertised_endpoints, self._config.advertised_listeners, listeners, canonical_host_name
        )
        cluster.broker = replace(cluster.broker, endpoints=endpoints)
        await cluster.registration.begin()
        cluster.store.watch_session(cluster.registration.on_session)

    async def _run(self, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        cluster, run = self._cluster, self._driver.run
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cluster.peers.run, name="peers")
                    await nursery.start(cluster.tasks.run, self._driver)
                    await nursery.start(cluster.fetchers.tasks.run, self._driver)
                    task_status.started()
                    await self._begun.wait()
                    for name, work in self._tasks():
                        nursery.start_soon(run, work, name=name)
        finally:
            self._ended.set()

    def _tasks(self) -> "list[tuple[str, Work[None]]]":
        cluster = self._cluster
        return [
            ("registration", cluster.registration.run()),
            ("controller", cluster.controller.run()),
            ("isr-keeper", cluster.isr_keeper.run()),
            ("topic-settings", cluster.settings.run()),
            ("broker-settings", cluster.broker_settings.run()),
            ("log-dir-events", cluster.log_dir_events.run()),
        ]

    # ---- stop

    async def hand_over(self) -> None:
        """Have the controller elect other leaders; the broker still serves."""
        if self._begun.is_set():
            await self._driver.run(self._cluster.hand_over())

    async def leave(self) -> None:
        """End what copies, asks and controls; the session ends with the store."""
        if self._begun.is_set():
            with suppress(MetadataStoreError), self._clock.timeout(RESIGN_S):
                await self._driver.run(self._cluster.controller.step_down())
        self._scope.cancel()
        await self._ended.wait()
        self._cluster.channel.close()


async def restore_high_watermarks(logs: LogManager) -> None:
    """Give the logs the high watermarks of the last run.

    A partition is opened when the controller tells of it. Until then the watermarks on the disk
    must not be lost, which are written for all logs at once.
    """
    for tp, offset in logs.read_high_watermarks().items():
        log = logs.get_log(tp)
        if log is not None and offset > log.high_watermark:
            log.update_high_watermark(offset)
        await PAUSE
