"""A broker's life: in which order its components start and stop (Kafka's KafkaServer).

Start (S-START-2, S-START-3): log directories locked -> metadata store -> identity -> topics'
metadata -> sockets bound -> logs loaded -> partitions led -> coordinators -> handlers -> sockets
served -> background work -> RUNNING_AS_BROKER. A failure on the way ends the start, releases what
was taken, and `run` returns False.

Stop (S-START-5), the last started first: background work ends, members parked in a rebalance are
answered, no new connections, requests in work get `STOP_REQUESTS_S`, high watermarks written,
metadata store closed, logs synced and closed with their checkpoints and the clean-shutdown marker,
locks released. Each stop is registered where its component is started, so a start that fails
half-way stops exactly what it had started.

This module wires; it decides nothing else. `broker.__main__` runs it, tests may run it in-process.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

import trio

from broker.broker_state import BrokerState, BrokerStateGauge
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.leadership import led_partitions
from broker.components import Components
from broker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from broker.coordinator.transaction.records import TRANSACTION_TOPIC
from broker.deadlines import Deadlines
from broker.reconfiguration import Reconfiguration
from broker.startup.advice import OPERATOR_ERRORS, explained
from broker.startup.directory_identity import Identity, locate_store, settle_identity
from broker.startup.exposure import tell_of_open_listeners
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
from storage.log_manager import LogManager, OfflineDir
from storage.open_files import OpenFiles
from storage.task import Task
from storage.waits import Work

logger = logging.getLogger(__name__)

STOP_REQUESTS_S = 10.0
"""Seconds that requests in work may still take at shutdown."""


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
        self._offline_listeners: list[Callable[[str], None]] = []

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
        # Stand-alone: no other broker could take over a partition.
        self.state.move_to(BrokerState.BROKER_SHUTTING_DOWN)
        try:
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
        config, world, run = self.config, self._world, self._driver.run
        self._to_stop.callback(world.workers.close)
        deadlines = Deadlines(world.clock, self.watch)
        services.start_soon(deadlines.run, name="deadlines")
        self.log_manager = LogManager(
            config,
            world.clock,
            world.fs,
            on_offline=self._directory_offline,
            defer=deadlines.soon,
            random=world.random,
            open_files=OpenFiles(world.descriptors.files),
        )
        self.log_manager.lock_and_check_dirs()
        threads = config.num_recovery_threads_per_data_dir
        self._at_stop(self.log_manager.shutdown, trio.CapacityLimiter(threads))
        self.store = await self._open_store()
        identity = await run(
            settle_identity(
                self.store,
                config,
                world.fs,
                self.log_manager.live_dirs,
                new_uuid=self._new_uuid,
                failed=self.log_manager.handle_dir_failure,
            )
        )
        logger.info("Cluster ID = %s, broker id = %d", identity.cluster_id, identity.broker_id)
        self.config = config = _with_identity(config, identity)
        if self.store.fresh:
            await self._take_over()
        configs = DynamicBrokerConfig(config, self.store)
        await run(configs.load())
        self.config = configs.current
        self.log_manager.reconfigure(self.config)  # it was made before the store could be read
        self._make_components(configs, identity, deadlines)
        await run(self.components.controller.load())
        await run(self.components.features.load())
        bound = self.components.socket_server.bind()
        self._to_stop.callback(self.components.socket_server.unbind)
        await self._load_logs()
        await self._lead(bound)
        services.start_soon(run, self.components.image_applier.run(), name="image-applier")
        self.components.log_mover.resume()
        self._at_stop(self.components.replica_manager.checkpoint_high_watermarks)
        await services.start(self.components.group_coordinator.run, self.components.driver)
        self._start_groups()
        await services.start(self.components.marker_writer.run, self.components.driver)
        await services.start(self.components.transaction_coordinator.run, self.components.driver)
        self._start_transactions()
        self._to_stop.callback(self.components.transaction_coordinator.shutdown)
        await services.start(self.components.channel.run, name="handlers")
        self._to_stop.push_async_callback(self.components.channel.close)
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
        tell_of_open_listeners(bound)
        self._announce(bound)

    def _at_stop(
        self, work: Callable[[], Work[None]], limiter: trio.CapacityLimiter | None = None
    ) -> None:
        async def run() -> None:
            await self._driver.run(work(), limiter=limiter)

        self._to_stop.push_async_callback(run)

    async def _open_store(self) -> EmbeddedStore:
        world, logs = self._world, self.log_manager
        path = locate_store(world.fs, logs.live_dirs, logs.offline_dirs, world.media.file_name)
        store = await self._driver.run(EmbeddedStore.open(world.media.open, path))

        async def close() -> None:
            await self._driver.run(store.close())

        self._to_stop.push_async_callback(close)
        return store

    async def _take_over(self) -> None:
        """Adopt topics that another broker left in the log directories; the store is empty."""
        from broker.cluster.adoption import take_over

        verdicts = await self._driver.run(
            take_over(
                self.store,
                self._world.fs,
                self.log_manager.live_dirs,
                self.config,
                self.config.broker_id,
                new_uuid=self._new_uuid,
            )
        )
        for verdict in verdicts:
            logger.log(*verdict.as_log_line())

    def _make_components(
        self, configs: DynamicBrokerConfig, identity: Identity, deadlines: Deadlines
    ) -> None:
        self.components = Components(
            configs,
            cluster_id=identity.cluster_id,
            store=self.store,
            log_manager=self.log_manager,
            deadlines=deadlines,
            world=self._world,
            driver=self._driver,
            watch=self.watch,
            check_buffers=self._check_buffers,
        )
        self._offline_listeners.append(self.components.replica_manager.directory_offline)
        configs.followers.append(Reconfiguration(self.components).follow)

    async def _load_logs(self) -> None:
        self.state.move_to(BrokerState.RECOVERING_FROM_UNCLEAN_SHUTDOWN)
        await load_all_logs(
            self.log_manager,
            self.components.controller.topic_config,
            threads_per_dir=self.config.num_recovery_threads_per_data_dir,
            clock=self._world.clock,
            driver=self._driver,
        )

    async def _lead(self, bound: Sequence[BoundListener]) -> None:
        warn_of_stray_logs(self.log_manager, self.components.image)
        reserve_known_producer_ids(self.log_manager, self.components.producer_ids)
        listeners = [
            Listener(name=b.name, host=b.host, port=b.port, protocol=b.protocol) for b in bound
        ]
        controller = self.components.controller
        await self._driver.run(controller.lead())
        await self._driver.run(controller.register(listeners))

    def _start_groups(self) -> None:
        led, count = led_partitions(self.components.image, OFFSETS_TOPIC, self.config.broker_id)
        self.components.group_coordinator.startup(led, partition_count=count)
        self.components.image_applier.coordinators[OFFSETS_TOPIC] = (
            self.components.group_coordinator
        )

    def _start_transactions(self) -> None:
        led, count = led_partitions(self.components.image, TRANSACTION_TOPIC, self.config.broker_id)
        self.components.transaction_coordinator.startup(led, partition_count=count)
        self.components.image_applier.coordinators[TRANSACTION_TOPIC] = (
            self.components.transaction_coordinator
        )

    async def _run_background(self) -> None:
        period_ms = self.config.replica_high_watermark_checkpoint_interval_ms
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
                    await self.components.background.run([*self.log_manager.tasks(), checkpoint])
        finally:
            self._background_ended.set()

    async def _stop_background(self) -> None:
        # A call that was begun is still completed.
        self._background_scope.cancel()
        await self._background_ended.wait()

    def _directory_offline(self, lost: OfflineDir) -> None:
        for listener in self._offline_listeners:
            listener(lost.path)
        if lost.last:
            self._fail(f"All log dirs have failed, the last one {lost.path}: {lost.error}.")


def _with_identity(config: BrokerConfig, identity: Identity) -> BrokerConfig:
    """The configuration for the components: with the broker's id, also if it was generated."""
    if config.broker_id == identity.broker_id:
        return config
    return config.with_broker_id(identity.broker_id)
