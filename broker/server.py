"""A broker's life: in which order its components start and stop (Kafka's KafkaServer).

Start (S-START-2, S-START-3): log directories locked -> metadata store -> identity -> configuration
-> key stores read -> components made -> topics' metadata -> sockets bound -> logs loaded ->
partitions led -> coordinators -> handlers -> sockets served -> background work ->
RUNNING_AS_BROKER. A failure on the way ends the start, releases what was taken, and `run` returns
False. A member of a cluster (`zookeeper.connect`) leads nothing by itself: when all else is up it
registers, and obeys the controller, or becomes it (`broker.startup.cluster_start`).

Stop (S-START-5), the last started first: background work ends, members parked in a rebalance are
answered, no new connections, requests in work get `STOP_REQUESTS_S`, high watermarks written, logs
synced and closed with their checkpoints and the clean-shutdown marker, metadata store closed, locks
released. A member has the controller take over before anything else. Each stop is registered where
its component is started, so a start that fails half-way stops exactly what it had started.

This module wires; it decides nothing else. `broker.__main__` runs it, tests may run it in-process.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import trio

from broker.broker_state import BrokerState, BrokerStateGauge
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.leadership import led_partitions
from broker.cluster.metadata_store import MetadataStore
from broker.cluster.password_encoder import PasswordEncoder
from broker.components import Components
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.deadlines import Deadlines
from broker.startup.advice import OPERATOR_ERRORS, explained
from broker.startup.directory_identity import (
    locate_store,
    refuse_member_alone,
    refuse_return_to_cluster,
    settle_identity,
    settle_member_identity,
)
from broker.startup.encryption import open_tls
from broker.startup.exposure import tell_of_joined_super_users, tell_of_open_listeners
from broker.startup.known_producers import reserve_known_producer_ids
from broker.startup.log_loader import load_all_logs
from broker.startup.metrics_export import start_metrics
from broker.startup.stray_logs import warn_of_stray_logs
from broker.world.driver import Driver
from broker.world.loop_watch import LoopWatch
from broker.world.transport import BoundListener
from broker.world.uuids import random_uuid
from broker.world.world import World
from config.broker_config import BrokerConfig
from config.listener import Listener
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC
from storage.log_manager import LogManager
from storage.manager.directories import LogDirectories
from storage.open_files import OpenFiles
from storage.task import Task
from storage.waits import Work, call

if TYPE_CHECKING:
    from broker.cluster.adoption import Adoption
    from broker.network.tls_listeners import TlsListeners
    from broker.startup.cluster_start import MemberLife

logger = logging.getLogger(__name__)

STOP_REQUESTS_S = 6.0
"""Seconds that requests in work may still take at shutdown. Containers are killed after ten, and
the logs have to be flushed before."""


def _take_over() -> "Callable[..., Work[Adoption]]":
    """Import what only a first start needs; in a thread, because its bytecode takes a while."""
    from broker.cluster.adoption import take_over

    return take_over


class BrokerServer:
    """One broker; it runs once."""

    def __init__(
        self,
        config: BrokerConfig,
        world: World,
        *,
        announce: Callable[[Sequence[BoundListener]], None] = lambda bound: None,
        on_started: Callable[[], None] = lambda: None,
        check_buffers: bool = False,
    ) -> None:
        """`announce` is called with the bound listeners, `on_started` when the broker serves."""
        self.config = config
        """The configuration that the operator set; `components.configs` has the one in force."""
        self.state = BrokerStateGauge()
        self.watch = LoopWatch(world.clock)
        """A caller that runs the loop in real time installs it as a trio instrument."""
        self._world = world
        self._driver = Driver(world.workers, world.clock, self.watch)
        self._new_uuid = partial(random_uuid, world.random)
        self._announce = announce
        self._on_started = on_started
        self._check_buffers = check_buffers
        self._stop = trio.Event()
        self._starting = trio.CancelScope()
        self._background_scope = trio.CancelScope()
        self._background_ended = trio.Event()
        self.failure: str | None = None
        """Why the broker could not start or go on, in a sentence."""
        self._to_stop = AsyncExitStack()
        self._member: MemberLife | None = None
        """The life in a cluster; None stand-alone."""

    # ---- life

    async def run(self) -> bool:
        """Start, serve until `request_shutdown`, stop. Returns False if start or stop failed."""
        if self.state.state is not BrokerState.NOT_RUNNING:
            raise RuntimeError("Kafka server is still shutting down, cannot re-start!")
        went_well = True
        try:
            async with trio.open_nursery() as services:
                started = await self._start_or_say_why_not(services)
                if started:
                    await self._stop.wait()
                went_well = await self._shut_down() and (started or self._stop.is_set())
                services.cancel_scope.cancel()
        except Exception:
            # A background task has a bug: skip the orderly stop, which would mark the logs clean.
            self._to_stop.pop_all()
            logger.critical("Fatal error in a background task. Ending", exc_info=True)
            self.failure = "A background task failed. This is a bug: the log has the details."
            went_well = False
        self.state.move_to(BrokerState.NOT_RUNNING)
        return went_well and self.failure is None

    async def _start_or_say_why_not(self, services: trio.Nursery) -> bool:
        """Start. Returns False if that failed, or `request_shutdown` cancelled it."""
        logger.info("starting")
        began = self._world.clock.monotonic()
        self.state.move_to(BrokerState.STARTING)
        try:
            with self._starting:
                await self._start(services)
        except Exception as error:
            known = isinstance(error, OPERATOR_ERRORS)
            self.failure = explained(error)
            logger.critical(
                "Fatal error during KafkaServer startup. Prepare to shutdown: %s",
                error,
                exc_info=None if known else error,
            )
            return False
        if self._starting.cancelled_caught:
            return False
        self.state.move_to(BrokerState.RUNNING_AS_BROKER)
        self._on_started()
        logger.info("Kafka Server started in %dms", (self._world.clock.monotonic() - began) * 1000)
        return True

    async def _shut_down(self) -> bool:
        """Stop whatever was started, the last first (S-START-5). Returns False if that failed."""
        logger.info("shutting down")
        self.state.move_to(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
        try:
            if self._member is not None:
                await self._member.hand_over()
            self.state.move_to(BrokerState.BROKER_SHUTTING_DOWN)
            await self._to_stop.aclose()
        except Exception:
            logger.critical("Fatal error during KafkaServer shutdown.", exc_info=True)
            return False
        logger.info("shut down completed")
        return True

    def request_shutdown(self) -> None:
        """Stop as soon as possible; a start under way is cancelled."""
        self._stop.set()
        if self.state.state in (
            BrokerState.STARTING,
            BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN,
        ):
            self._starting.cancel()

    def _fail(self, reason: str) -> None:
        """Shut down for `reason`, because the broker cannot go on."""
        logger.critical("%s Shutting down.", reason)
        self.failure = reason
        self.request_shutdown()

    # ---- start: each part that must be stopped registers its stop in `_to_stop`

    async def _start(self, services: trio.Nursery) -> None:
        world, run = self._world, self._driver.run
        self._to_stop.callback(world.workers.close)
        deadlines = Deadlines(world.clock, self.watch)
        services.start_soon(self._driver.run, deadlines.run(), name="deadlines")
        directories = self._directories = LogDirectories(
            world.fs, self.config.log_dirs, deadlines.soon
        )
        directories.listeners.append(self._directory_offline)
        in_cluster = bool(self.config.zookeeper_connect)
        if in_cluster:  # before any write, so that a refusal of ZooKeeper leaves no trace
            self.store = await self._open_tree()
        directories.lock_and_check()
        self._to_stop.callback(directories.unlock_all)
        live, file_name = [*directories.live], world.media.file_name
        if in_cluster:
            refuse_return_to_cluster(world.fs, live, file_name)
        else:
            refuse_member_alone(world.fs, live, file_name)
            self.store = await self._open_store()
        configs, cluster_id = await run(self._settle_config())
        secured = await run(open_tls(configs, world))
        self._make_components(configs, cluster_id, deadlines, secured)
        await self._load_metadata()
        await run(self.components.client_quotas.load())
        await run(self.components.load_security())
        await self._load_rules(services)
        bound = self.components.socket_server.bind()
        self._to_stop.callback(self.components.socket_server.unbind)
        await self._load_logs()
        await self._lead(services, bound)
        services.start_soon(run, self.components.client_quotas.run(), name="client-quotas")
        self.components.log_mover.resume()
        self._at_stop(self.components.replica_manager.checkpoint_high_watermarks)
        await self._start_coordinator(services, OFFSETS_TOPIC, self.components.group_coordinator)
        await services.start(self.components.marker_writer.run, self.components.driver)
        if self.components.cluster_markers is not None:
            await services.start(self.components.cluster_markers.run, self.components.driver)
        await self._start_coordinator(
            services, TRANSACTION_TOPIC, self.components.transaction_coordinator
        )
        self._to_stop.callback(self.components.transaction_coordinator.shutdown)
        await services.start(self.components.requests.run, name="handlers")
        self._to_stop.callback(self.components.requests.close)
        await services.start(self.components.socket_server.serve)
        self._to_stop.push_async_callback(self.components.socket_server.close, STOP_REQUESTS_S)
        # Runs before the sockets close: answers members parked in a rebalance, so that closing need
        # not wait for them.
        self._to_stop.callback(self.components.group_coordinator.shutdown)
        services.start_soon(self._run_background, name="background")
        self._to_stop.push_async_callback(self._stop_background)
        await start_metrics(
            services,
            self.components,
            self._world.transport,
            self._world.clock,
            lambda: self.state.state,
            self._world.descriptors,
        )
        if self._member is not None:
            await self._member.begin(services)
            self._to_stop.push_async_callback(self._member.leave)
            await self._member.join(bound)
        tell_of_open_listeners(bound, self.components.configs.current)
        tell_of_joined_super_users(self.config)
        self._announce(bound)

    def _at_stop(
        self, work: Callable[[], Work[None]], limiter: trio.CapacityLimiter | None = None
    ) -> None:
        async def run() -> None:
            await self._driver.run(work(), limiter=limiter)

        self._to_stop.push_async_callback(run)

    async def _open_store(self) -> MetadataStore:
        world, logs = self._world, self._directories
        path = locate_store(world.fs, [*logs.live], [*logs.offline], world.media.file_name)
        store = await self._driver.run(EmbeddedStore.open(world.media.open, path))
        self._at_stop(store.close)
        return store

    async def _open_tree(self) -> MetadataStore:
        from broker.startup.cluster_start import expect_free_id, open_tree

        store = await self._driver.run(open_tree(self.config, self._world))
        self._at_stop(store.close)
        await self._driver.run(expect_free_id(store, self.config))
        return store

    async def _settle_config(self) -> tuple[DynamicBrokerConfig, str]:
        """Settle the ids; return the configuration with its dynamic configs, and the cluster id."""
        settle = settle_member_identity if self.config.zookeeper_connect else settle_identity
        identity = await settle(
            self.store,
            self.config,
            self._world.fs,
            [*self._directories.live],
            new_uuid=self._new_uuid,
            failed=self._directories.take_offline,
        )
        logger.info("Cluster ID = %s, broker id = %d", identity.cluster_id, identity.broker_id)
        config = self.config.with_broker_id(identity.broker_id)
        if isinstance(self.store, EmbeddedStore) and self.store.fresh:
            await self._take_over(config)
        encoder = None
        if config.zookeeper_connect:
            encoder = PasswordEncoder(config, self._world.random.randbytes)
        resolve = self._world.transport.resolve
        configs = await DynamicBrokerConfig.load(config, self.store, encoder, resolve)
        return configs, identity.cluster_id

    async def _take_over(self, config: BrokerConfig) -> None:
        """Adopt topics that another broker left in the log directories; the store is empty."""
        take_over = await call(_take_over)
        adoption = await take_over(
            self.store,
            self._world.fs,
            tuple(self._directories.live),
            config,
            config.broker_id,
            new_uuid=self._new_uuid,
        )
        for verdict in adoption.topics:
            logger.log(*verdict.as_log_line())
        if adoption.access.is_any:
            logger.info("Took over from the KRaft metadata log: %s", adoption.access)
        for left_out in adoption.access.left_out:
            logger.error("Left out of what the KRaft metadata log says about access: %s", left_out)

    def _make_components(
        self,
        configs: DynamicBrokerConfig,
        cluster_id: str,
        deadlines: Deadlines,
        secured: "TlsListeners | None",
    ) -> None:
        config, world = configs.current, self._world
        self.log_manager = LogManager(
            config,
            world.clock,
            self._directories,
            random=world.random,
            open_files=OpenFiles(world.descriptors.files),
        )
        threads = config.num_recovery_threads_per_data_dir
        self._at_stop(
            partial(self.log_manager.shutdown, unlock=False), trio.CapacityLimiter(threads)
        )
        self.components = Components(
            configs,
            cluster_id=cluster_id,
            store=self.store,
            log_manager=self.log_manager,
            deadlines=deadlines,
            world=world,
            driver=self._driver,
            check_buffers=self._check_buffers,
            secured=secured,
        )

    async def _load_metadata(self) -> None:
        """Read what the metadata has of topics and features."""
        components, run = self.components, self._driver.run
        if components.cluster is not None:
            from broker.startup.cluster_start import MemberLife

            self._member = MemberLife(
                components.cluster,
                components.configs.current,
                self._driver,
                self._world.clock,
            )
            await run(components.cluster.settings.load())
        if components.alone is not None:
            await run(components.alone.controller.load())
        await run(components.features.load())

    async def _load_rules(self, services: trio.Nursery) -> None:
        """Read the access rules, and follow their changes, if there is an authorizer."""
        rules = self.components.acls
        if rules is not None:
            await self._driver.run(rules.load())
            services.start_soon(self._driver.run, rules.run(), name="access-rules")

    async def _load_logs(self) -> None:
        self.state.move_to(BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN)
        await load_all_logs(
            self.log_manager,
            self.components.controller.topic_config,
            threads_per_dir=self.components.configs.current.num_recovery_threads_per_data_dir,
            clock=self._world.clock,
            driver=self._driver,
        )

    async def _lead(self, services: trio.Nursery, bound: Sequence[BoundListener]) -> None:
        alone = self.components.alone
        if alone is None:
            from broker.startup.cluster_start import restore_high_watermarks

            await self._driver.run(restore_high_watermarks(self.log_manager))
            return
        warn_of_stray_logs(self.log_manager, self.components.image)
        reserve_known_producer_ids(self.log_manager, self.components.producer_ids)
        listeners = [
            Listener(name=b.name, host=b.host, port=b.port, protocol=b.protocol) for b in bound
        ]
        await self._driver.run(alone.controller.lead())
        await self._driver.run(alone.controller.register(listeners))
        services.start_soon(self._driver.run, alone.image_applier.run(), name="image-applier")

    async def _start_coordinator(
        self,
        services: trio.Nursery,
        topic: str,
        coordinator: GroupCoordinator | TransactionCoordinator,
    ) -> None:
        components = self.components
        await services.start(coordinator.run, components.driver)
        broker_id = components.configs.current.broker_id
        led, count = led_partitions(components.image, topic, broker_id)
        coordinator.startup(led, partition_count=count)
        components.coordinators[topic] = coordinator

    async def _run_background(self) -> None:
        config = self.components.configs.current
        period_ms = config.replica_high_watermark_checkpoint_interval_ms
        checkpoint = Task(
            name="highwatermark-checkpoint",
            initial_delay_ms=period_ms,
            period_ms=period_ms,
            run=self.components.replica_manager.checkpoint_high_watermarks,
        )
        try:
            with self._background_scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.components.log_mover.run, name="log-mover")
                    nursery.start_soon(self.components.log_cleaner.run, name="log-cleaner")
                    await self.components.background.run(
                        [*self.log_manager.tasks(), checkpoint, *self.components.security_tasks()]
                    )
        finally:
            self._background_ended.set()

    async def _stop_background(self) -> None:
        # A call that was begun is still completed.
        self._background_scope.cancel()
        await self._background_ended.wait()

    def _directory_offline(self, path: str) -> None:
        if not self._directories.live:
            error = self._directories.offline[path]
            self._fail(f"All log dirs have failed, the last one {path}: {error}.")
