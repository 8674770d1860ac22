"""The components of a broker, and from which settings each is made.

Making the components starts nothing and opens nothing: `broker.server` starts and stops them in
order. A setting that may change while they run is read from `configs.current` when it is used, or
`_follow` says what is to be done. After the `BrokerReconfigurable`s of Kafka's DynamicBrokerConfig.
"""

from functools import partial
from uuid import UUID

from broker.api.api_versions import unsupported_version_response
from broker.background import Background
from broker.cleaner.log_cleaner import LogCleaner
from broker.cluster.controller import Controller
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.embedded_store import EmbeddedStore
from broker.cluster.features import Features
from broker.cluster.image import MetadataImage
from broker.cluster.image_applier import ImageApplier
from broker.cluster.producer_ids import ProducerIdAllocator
from broker.cluster.topic_log_configs import TopicLogConfigs, topic_defaults
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.settings import GroupSettings
from broker.coordinator.marker_writer import ReplicaMarkerWriter
from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.settings import TransactionSettings
from broker.deadlines import Deadlines
from broker.network.connection_limits import Limits
from broker.network.request_channel import RequestChannel
from broker.network.socket_server import SocketServer, SocketServerSettings
from broker.registry import ADVERTISED, build_handlers
from broker.replication.batch_looker import BatchLooker
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.log_mover import LogMover
from broker.replication.purgatory import Purgatory
from broker.replication.replica_manager import Purgatories, ReplicaManager
from broker.services import Services
from broker.world.driver import Driver
from broker.world.loop_watch import LoopWatch
from broker.world.transport import SYSTEM_DEFAULT
from broker.world.uuids import random_uuid
from broker.world.world import World
from config.broker_config import BrokerConfig
from protocol.types import OFFSETS_TOPIC
from storage.log_manager import LogManager

BACKLOG = 1024
"""Connections waiting to be accepted. With Kafka's default of 50 a burst of new clients waits for a
whole second (measured: eleven times in a thousand). The kernel caps the number; a value that the
operator set wins."""


class Components:
    """The components of one broker, as public attributes."""

    def __init__(
        self,
        configs: DynamicBrokerConfig,
        *,
        cluster_id: str,
        store: EmbeddedStore,
        log_manager: LogManager,
        deadlines: Deadlines,
        world: World,
        driver: Driver,
        watch: LoopWatch,
        check_buffers: bool,
    ) -> None:
        config = configs.current
        clock, workers = world.clock, world.workers
        self.driver = driver
        self.configs = configs
        self.log_manager = log_manager
        self.deadlines = deadlines
        self.watch = watch
        self.image = MetadataImage(cluster_id=cluster_id, controller_id=config.broker_id)
        self.replica_manager = ReplicaManager(
            log_manager,
            self.image,
            clock,
            config,
            Purgatories(
                produce=Purgatory("Produce", self.deadlines),
                fetch=Purgatory("Fetch", self.deadlines),
            ),
            workers,
        )
        log_manager.repairs.repaired = self.replica_manager.records_repaired
        log_manager.directories.listeners.append(self.replica_manager.directory_offline)
        self.log_mover = LogMover(self.replica_manager, log_manager, driver)
        topic_configs = TopicLogConfigs(self.image, configs, log_manager)
        self.image_applier = ImageApplier(
            store=store,
            image=self.image,
            replicas=self.replica_manager,
            logs=log_manager,
            configs=topic_configs,
            broker_id=config.broker_id,
        )
        self.controller = Controller(
            store=store,
            image=self.image,
            applier=self.image_applier,
            configs=topic_configs,
            logs=log_manager,
            broker_id=config.broker_id,
            clock=clock,
            new_uuid=partial(random_uuid, world.random),
        )
        self.group_coordinator = GroupCoordinator(
            GroupSettings.from_config(config),
            ReplicaPartitionWriter(
                self.replica_manager, timeout_ms=config.offsets_commit_timeout_ms
            ),
            self.deadlines,
            clock,
            new_id=lambda: str(UUID(bytes=random_uuid(world.random))),
        )
        self.features = Features(store)
        self.producer_ids = ProducerIdAllocator(store, config.broker_id)
        self.marker_writer = ReplicaMarkerWriter(
            self.replica_manager,
            clock,
            timeout_ms=config.request_timeout_ms,
            listeners={OFFSETS_TOPIC: self.group_coordinator},
        )
        self.transaction_coordinator = TransactionCoordinator(
            TransactionSettings.from_config(config),
            ReplicaPartitionWriter(self.replica_manager, timeout_ms=config.request_timeout_ms),
            self.marker_writer,
            self.deadlines,
            clock,
            self.producer_ids,
        )
        self.fetch_sessions = FetchSessionCache(
            clock, config.max_incremental_fetch_session_cache_slots, random=world.random
        )
        served = build_handlers(
            Services(
                advertised=ADVERTISED,
                config=config,
                broker_configs=configs,
                image=self.image,
                controller=self.controller,
                features=self.features,
                producer_ids=self.producer_ids,
                replica_manager=self.replica_manager,
                fetch_sessions=self.fetch_sessions,
                group_coordinator=self.group_coordinator,
                transaction_coordinator=self.transaction_coordinator,
                marker_writer=self.marker_writer,
                clock=clock,
                log_manager=log_manager,
                log_mover=self.log_mover,
                volumes=world.fs,
                workers=workers,
                looker=BatchLooker(clock.monotonic),
            )
        )
        self.channel = RequestChannel(
            served,
            clock=clock,
            driver=driver,
            workers=config.num_io_threads,
            queued_max=config.queued_max_requests,
            unsupported_version_reply=unsupported_version_response,
        )
        self.socket_server = SocketServer(
            socket_settings(
                config,
                check_buffers=check_buffers,
                max_descriptors=world.descriptors.connections,
            ),
            self.channel,
            world.transport,
        )
        self.log_cleaner = LogCleaner(
            log_manager, config, clock=clock, workers=workers, driver=driver, random=world.random
        )
        self.background = Background(threads=config.background_threads, clock=clock, driver=driver)
        self._follow(configs)

    def _follow(self, configs: DynamicBrokerConfig) -> None:
        """Say what the components do when a setting changes while they run."""
        follow = configs.follow
        follow(lambda config: config, self.log_manager.reconfigure)
        follow(topic_defaults, lambda _: self.controller.topic_defaults_changed())
        follow(lambda config: config.num_io_threads, self.channel.pool.resize)
        follow(lambda config: config.background_threads, self.background.resize)
        follow(lambda config: config, self.log_cleaner.reconfigure)
        follow(connection_limits, self.socket_server.limits.reconfigure)
        follow(TransactionSettings.from_config, self.transaction_coordinator.reconfigure)


def connection_limits(config: BrokerConfig) -> Limits:
    """The limits on the number of connections, from the configuration."""
    own = {
        listener.name: config.for_listener(listener.name, "max.connections")
        for listener in config.listeners
    }
    return Limits(
        total=config.max_connections,
        by_listener={name: limit for name, limit in own.items() if limit is not None},
        per_ip=config.max_connections_per_ip,
        ip_overrides=config.ip_connection_limits,
    )


def socket_settings(
    config: BrokerConfig, *, check_buffers: bool, max_descriptors: int
) -> SocketServerSettings:
    """What the settings ask of the listeners and their sockets."""
    idle_ms = config.connections_max_idle_ms
    return SocketServerSettings(
        listeners=config.listeners,
        backlog=_unless_default(config, "socket.listen.backlog.size", BACKLOG),
        send_buffer=_unless_default(config, "socket.send.buffer.bytes", SYSTEM_DEFAULT),
        receive_buffer=_unless_default(config, "socket.receive.buffer.bytes", SYSTEM_DEFAULT),
        max_request_bytes=config.socket_request_max_bytes,
        queued_bytes=config.queued_max_request_bytes,
        incomplete_bytes=config.incomplete_request_max_bytes,
        limits=connection_limits(config),
        max_descriptors=max_descriptors,
        max_idle_s=None if idle_ms < 0 else idle_ms / 1000,
        check_buffers=check_buffers,
    )


def _unless_default(config: BrokerConfig, key: str, better: int) -> int:
    """The operator's value, else `better`, which was measured to beat Kafka's default."""
    return int(config.values[key]) if key in config.originals else better
