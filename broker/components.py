"""The components of a broker, and from which settings each is made.

Making the components starts nothing and opens nothing: `broker.server` starts and stops them in
order. A setting that may change while they run is read from `configs.current` when it is used, or
`_follow` says what is to be done. After the `BrokerReconfigurable`s of Kafka's DynamicBrokerConfig.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID

from broker.api.api_versions import unsupported_version_response
from broker.api_facts import Served
from broker.background import Background
from broker.cleaner.log_cleaner import LogCleaner
from broker.cluster.client_quotas import ClientQuotas
from broker.cluster.controller import Controller
from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.features import Features
from broker.cluster.image import NO_LEADER, MetadataImage
from broker.cluster.image_applier import Coordinator, ImageApplier
from broker.cluster.metadata_store import MetadataStore
from broker.cluster.producer_ids import ProducerIdAllocator, StoredBlocks
from broker.cluster.topic_log_configs import TopicLogConfigs, topic_defaults
from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.settings import GroupSettings
from broker.coordinator.marker_writer import ReplicaMarkerWriter
from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.settings import TransactionSettings
from broker.deadlines import Deadlines
from broker.fairness import Lane
from broker.network.activity import Ending
from broker.network.connection_limits import Limits
from broker.network.request_services import RequestServices
from broker.network.socket_server import SocketServer, SocketServerSettings
from broker.quotas.creation_rates import CreationRates
from broker.quotas.quotas import Quotas
from broker.quotas.rate import Windows
from broker.registry import ADVERTISED, advertised, build_handlers, cluster_apis
from broker.replication.batch_looker import BatchLooker
from broker.replication.delta_application import apply_delta
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.log_mover import LogMover
from broker.replication.purgatory import Purgatory
from broker.replication.replica_manager import Purgatories, ReplicaManager
from broker.services import Services
from broker.world.driver import Driver
from broker.world.transport import SYSTEM_DEFAULT
from broker.world.uuids import random_uuid
from broker.world.world import World
from config.broker_config import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.types import OFFSETS_TOPIC, TRANSACTION_TOPIC
from storage.log_manager import LogManager
from storage.task import Task

if TYPE_CHECKING:
    from broker.membership.cluster_parts import ClusterParts
    from broker.membership.no_features import NoFeatures
    from broker.membership.topic_admin import TopicAdmin
    from broker.network.connection import Connection
    from broker.network.strangers import StrangerLimits
    from broker.network.tls_listeners import TlsListeners
    from broker.security.acl_authorizer import AclAuthorizer
    from broker.security.acl_store import AclStore
    from broker.security.authentication.listeners import AuthenticatingListeners
    from broker.security.authentication.statistics import AuthenticationStatistics
    from broker.security.delegation_tokens import DelegationTokens
    from broker.zookeeper.zookeeper_store import ZooKeeperStore

SIGNATURES = 1
"""Hashes and signatures, which keep a processor busy, at the same time."""
BACKLOG = 1024
"""Connections waiting to be accepted. With Kafka's default of 50 a burst of new clients waits for a
whole second (measured: eleven times in a thousand). The kernel caps the number; a value that the
operator set wins."""


class StandAlone(NamedTuple):
    """The parts that keep the metadata of a stand-alone broker."""

    controller: Controller
    image_applier: ImageApplier


class Components:
    """The components of one broker, as public attributes."""

    def __init__(
        self,
        configs: DynamicBrokerConfig,
        *,
        cluster_id: str,
        store: MetadataStore,
        log_manager: LogManager,
        deadlines: Deadlines,
        world: World,
        driver: Driver,
        check_buffers: bool,
        secured: "TlsListeners | None" = None,
    ) -> None:
        """`secured`: the TLS of listeners, if there are such."""
        config = configs.current
        clock, workers = world.clock, world.workers
        self.driver = driver
        self.configs = configs
        self.log_manager = log_manager
        self.deadlines = deadlines
        self.watch = driver.watch
        self.image = MetadataImage(
            cluster_id=cluster_id,
            controller_id=NO_LEADER if config.zookeeper_connect else config.broker_id,
        )
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
        self.replica_manager.opened = self.log_mover.opened
        self.controller: Controller | TopicAdmin
        """Changes topics."""
        self.features: Features | NoFeatures
        self.alone: StandAlone | None = None
        """The parts of a stand-alone broker."""
        self.cluster: ClusterParts | None = None
        """The parts of a member of a cluster."""
        self.coordinators: dict[str, Coordinator]
        """By the topic in which each keeps its state; notified of elections while registered."""
        if config.zookeeper_connect:
            self.cluster = self._cluster_parts(store, world)
            self.controller, self.features = self.cluster.topics, self.cluster.features
            self.coordinators = self.cluster.coordinators
        else:
            self.alone = self._stand_alone(store, world)
            self.controller, self.features = self.alone.controller, Features(store)
            self.coordinators = self.alone.image_applier.coordinators
        across = None if self.cluster is None else self.cluster.across
        self.group_coordinator = GroupCoordinator(
            GroupSettings.from_config(config),
            ReplicaPartitionWriter(
                self.replica_manager, timeout_ms=config.offsets_commit_timeout_ms
            ),
            self.deadlines,
            clock,
            new_id=lambda: str(UUID(bytes=random_uuid(world.random))),
            topic_size=None if across is None else across.size_of(OFFSETS_TOPIC),
        )
        self.acls: AclStore | None
        self.authorizer: AclAuthorizer | None
        self.acls, self.authorizer = _authorizer(config, store)
        self.producer_ids = ProducerIdAllocator(
            StoredBlocks(store, config.broker_id)
            if self.cluster is None
            else self.cluster.producer_ids
        )
        self.marker_writer = ReplicaMarkerWriter(
            self.replica_manager,
            clock,
            timeout_ms=config.request_timeout_ms,
            listeners={OFFSETS_TOPIC: self.group_coordinator},
            appended=None if across is None else across.guards.on_marker,
        )
        self.cluster_markers = (
            None
            if across is None
            else across.markers(self.marker_writer, config.request_timeout_ms)
        )
        """Writes markers to other brokers, too; None stand-alone."""
        self.transaction_coordinator = TransactionCoordinator(
            TransactionSettings.from_config(config),
            ReplicaPartitionWriter(self.replica_manager, timeout_ms=config.request_timeout_ms),
            self.cluster_markers or self.marker_writer,
            self.deadlines,
            clock,
            self.producer_ids,
            topic_size=None if across is None else across.size_of(TRANSACTION_TOPIC),
        )
        self.quotas = Quotas(
            clock,
            Windows(config.quota_window_num, config.quota_window_size_seconds * 1000),
            Windows(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            ),
        )
        self.quotas.limit_connections(creation_rates(config))
        self.client_quotas = ClientQuotas(store, self.quotas)
        self.fetch_sessions = FetchSessionCache(
            clock, config.max_incremental_fetch_session_cache_slots, random=world.random
        )
        self.delegation_tokens, self.authentication = security_parts(
            config, store, deadlines, world
        )
        served = build_handlers(
            Services(
                advertised=ADVERTISED
                if self.cluster is None
                else advertised(cluster_apis().values()),
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
                store=store,
                delegation_tokens=self.delegation_tokens,
                quotas=self.quotas,
                client_quotas=self.client_quotas,
                allowed=self.authorizer,
                acls=self.acls,
                remote_coordinators=None
                if across is None
                else across.remote_coordinators(self.transaction_coordinator.partition_for),
                cluster=self.cluster,
            )
        )
        self.requests = RequestServices(
            served,
            clock=clock,
            driver=driver,
            workers=config.num_io_threads,
            unsupported_version_reply=unsupported_version_response,
            quotas=self.quotas,
            deadlines=deadlines,
        )
        self.socket_server = SocketServer(
            socket_settings(
                config,
                check_buffers=check_buffers,
                max_descriptors=world.descriptors.connections,
            ),
            self.requests,
            world.transport,
            secured=secured,
            **self._entrance(served, world.descriptors.connections),
        )
        self.log_cleaner = LogCleaner(
            log_manager, config, clock=clock, workers=workers, driver=driver, random=world.random
        )
        self.background = Background(threads=config.background_threads, clock=clock, driver=driver)
        self._follow(configs)

    def _stand_alone(self, store: MetadataStore, world: World) -> StandAlone:
        config = self.configs.current
        topic_configs = TopicLogConfigs(self.image, self.configs, self.log_manager)
        image_applier = ImageApplier(
            store=store,
            image=self.image,
            carry_out=partial(apply_delta, self.replica_manager),
            logs=self.log_manager,
            configs=topic_configs,
            broker_id=config.broker_id,
        )
        controller = Controller(
            store=store,
            image=self.image,
            applier=image_applier,
            configs=topic_configs,
            logs=self.log_manager,
            broker_id=config.broker_id,
            clock=world.clock,
            new_uuid=partial(random_uuid, world.random),
        )
        return StandAlone(controller, image_applier)

    def _cluster_parts(self, store: MetadataStore, world: World) -> "ClusterParts":
        from broker.membership.cluster_parts import Around, ClusterParts

        return ClusterParts(
            Around(
                store=cast("ZooKeeperStore", store),
                configs=self.configs,
                image=self.image,
                log_manager=self.log_manager,
                replica_manager=self.replica_manager,
                world=world,
                driver=self.driver,
                deadlines=self.deadlines,
            )
        )

    def _entrance(self, served: Mapping[ApiKey, Served], max_descriptors: int) -> "dict[str, Any]":
        """The arguments of the socket server for new connections of listeners that authenticate."""
        listeners = {} if self.authentication is None else self.authentication.by_name
        if not listeners:
            return {}
        from broker.network.entrance import BEFORE_AUTHENTICATION, entrance
        from broker.network.strangers import Strangers

        def closed(connection: "Connection", reason: Ending) -> None:
            counts = listeners[connection.info.listener_name].counts
            if reason is Ending.LATE:
                counts.late += 1
            else:
                counts.pushed_out += 1

        routes = self.requests.table({key: served[key] for key in BEFORE_AUTHENTICATION})
        limits = stranger_limits(self.configs.current, max_descriptors)
        return {
            "entrance": entrance(listeners, routes),
            "strangers": Strangers(limits, self.requests.clock, closed),
        }

    def authentication_statistics(self) -> "Mapping[str, AuthenticationStatistics]":
        """By listener that authenticates."""
        return {} if self.authentication is None else self.authentication.statistics()

    async def load_security(self) -> None:
        """Read tokens, credentials and keys. Raises ConfigError and MetadataStoreError."""
        if self.delegation_tokens is not None:
            await self.delegation_tokens.load()
        if self.authentication is not None:
            await self.authentication.load()

    def security_tasks(self) -> list[Task]:
        """The periodic tasks of authentication and of delegation tokens."""
        tasks = [] if self.authentication is None else self.authentication.tasks()
        if self.delegation_tokens is not None:
            period_ms = self.configs.current.delegation_token_expiry_check_interval_ms
            tasks.append(self.delegation_tokens.task(period_ms))
        return tasks

    def _follow(self, configs: DynamicBrokerConfig) -> None:
        """Say what the components do when a setting changes while they run."""
        follow = configs.follow
        follow(lambda config: config, self.log_manager.reconfigure)
        follow(topic_defaults, lambda _: self.controller.topic_defaults_changed())
        follow(lambda config: config.num_io_threads, self.requests.pool.resize)
        follow(lambda config: config.background_threads, self.background.resize)
        follow(lambda config: config, self.log_cleaner.reconfigure)
        follow(connection_limits, self.socket_server.limits.reconfigure)
        follow(creation_rates, self.quotas.limit_connections)
        follow(TransactionSettings.from_config, self.transaction_coordinator.reconfigure)


def security_parts(
    config: BrokerConfig, store: MetadataStore, deadlines: Deadlines, world: World
) -> "tuple[DelegationTokens | None, AuthenticatingListeners | None]":
    """The delegation tokens, and the listeners that authenticate, if there are any."""
    secret = config.delegation_token_secret_key or config.delegation_token_master_key
    with_tokens = secret is not None and secret.value
    if not config.sasl and not with_tokens:
        return None, None
    signatures = Lane(SIGNATURES)
    tokens = delegation_tokens(config, store, world, signatures) if with_tokens else None
    if not config.sasl:
        return tokens, None
    from broker.security.authentication.listeners import (
        AuthenticatingListeners,
        MechanismSurroundings,
    )

    parts = MechanismSurroundings(
        store=store,
        tokens=tokens,
        signatures=signatures,
        random=world.random,
        web=world.web,
        clock=world.clock,
    )
    delay_s = config.connection_failed_authentication_delay_ms / 1000
    return tokens, AuthenticatingListeners(config.sasl, parts, deadlines=deadlines, delay_s=delay_s)


def delegation_tokens(
    config: BrokerConfig, store: MetadataStore, world: World, signatures: Lane
) -> "DelegationTokens":
    """The store of the delegation tokens; their secret must be set."""
    from broker.security.delegation_tokens import DelegationTokens, TokenSettings

    secret = config.delegation_token_secret_key or config.delegation_token_master_key
    assert secret is not None
    return DelegationTokens(
        store,
        world.clock,
        TokenSettings(
            secret=secret.value.encode(),
            max_lifetime_ms=config.delegation_token_max_lifetime_ms,
            expiry_ms=config.delegation_token_expiry_time_ms,
        ),
        new_id=partial(random_uuid, world.random),
        random_bits=world.random.getrandbits,
        lane=signatures,
    )


def stranger_limits(config: BrokerConfig, max_descriptors: int) -> "StrangerLimits":
    """The bounds of connections that have yet to authenticate."""
    from broker.network.strangers import StrangerLimits

    return StrangerLimits(
        total=max(1, min(config.max_unauthenticated_connections, max_descriptors // 4)),
        per_address=config.max_unauthenticated_connections_per_ip,
        # A client that waits for its refusal is not late.
        longest_s=(
            config.sasl_authentication_timeout_ms + config.connection_failed_authentication_delay_ms
        )
        / 1000,
    )


def _authorizer(
    config: BrokerConfig, store: MetadataStore
) -> "tuple[AclStore, AclAuthorizer] | tuple[None, None]":
    """The access rules and their authorizer, if the configuration names one."""
    if not config.authorizer_class_name:
        return None, None
    from broker.security.acl_authorizer import AclAuthorizer
    from broker.security.acl_store import AclStore
    from protocol.acls.index import RuleIndex

    rules = AclStore(store, RuleIndex(allow_if_none=config.allow_everyone_if_no_acl_found))
    return rules, AclAuthorizer(rules, config.super_users)


def connection_limits(config: BrokerConfig) -> Limits:
    """The limits on the number of connections, from the configuration."""
    own = {
        listener.name: config.for_listener(listener.name, "max.connections")
        for listener in config.listeners
    }
    return Limits(
        total=config.max_connections,
        protected=_protected_listener(config),
        by_listener={name: limit for name, limit in own.items() if limit is not None},
        per_ip=config.max_connections_per_ip,
        ip_overrides=config.ip_connection_limits,
    )


def creation_rates(config: BrokerConfig) -> CreationRates:
    """The limits on the rate of new connections, from the configuration."""
    key = "max.connection.creation.rate"
    own = {listener.name: config.for_listener(listener.name, key) for listener in config.listeners}
    return CreationRates(
        total=config.max_connection_creation_rate,
        by_listener={name: rate for name, rate in own.items() if rate is not None},
        protected=_protected_listener(config),
    )


def _protected_listener(config: BrokerConfig) -> str | None:
    """The listener between brokers, if there are others; clients shall not keep brokers out."""
    return config.inter_broker_listener if len(config.listeners) > 1 else None


def socket_settings(
    config: BrokerConfig, *, check_buffers: bool, max_descriptors: int
) -> SocketServerSettings:
    """The settings of the listeners and their sockets."""
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
