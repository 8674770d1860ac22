"""Makes the parts of a member of a cluster, and says how they hold together.

Making them starts nothing: `broker.startup.cluster_start` does. Each part gets here the others that
it needs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.cluster.image import BrokerImage, MetadataImage
from broker.cluster.image_applier import Coordinator
from broker.cluster.topic_log_configs import TopicLogConfigs
from broker.controller.cluster_controller import ClusterController
from broker.controller.settings import ControllerSettings
from broker.coordinator.across_brokers import AcrossBrokers
from broker.coordinator.allocated_blocks import AllocatedBlocks
from broker.deadlines import Deadlines
from broker.membership.broker_peers import BrokerPeers
from broker.membership.broker_settings import BrokerSettings
from broker.membership.controlled_shutdown import hand_over
from broker.membership.controller_channel import ControllerChannel, endpoint_of
from broker.membership.controller_fence import UNKNOWN_EPOCH, ControllerFence
from broker.membership.image_changes import ImageChanges
from broker.membership.leadership import Leadership
from broker.membership.log_dir_events import LogDirEvents
from broker.membership.metadata_updates import MetadataUpdates
from broker.membership.no_features import NoFeatures
from broker.membership.registration import Registration
from broker.membership.stopping import Stopping
from broker.membership.topic_admin import AdminParts, TopicAdmin
from broker.membership.topic_settings import TopicSettings
from broker.peers.peer import Peer
from broker.peers.peers import Peers
from broker.peers.surroundings import PeerSurroundings
from broker.replication.delta_application import apply_delta
from broker.replication.fetching.replica_fetchers import ReplicaFetchers
from broker.replication.fetching.settings import FetchingSettings
from broker.replication.isr import ClusterRules
from broker.replication.isr_keeper import IsrKeeper
from broker.replication.replica_manager import ReplicaManager
from broker.replication.throttle import ReplicationThrottles
from broker.world.driver import Driver
from broker.world.tasks import Tasks
from broker.world.uuids import random_uuid
from broker.zookeeper.registration import register
from config.broker_config import BrokerConfig
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from storage.log_manager import LogManager

if TYPE_CHECKING:
    from broker.world.world import World
    from broker.zookeeper.zookeeper_store import ZooKeeperStore


_BLOCK_WITHIN_S: Final = 10.0
"""How long a client waits for a block of producer ids; then its code makes it ask again."""
_UNCLEAN: Final = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The parts of every broker that a member needs beside its own."""

    store: "ZooKeeperStore"
    configs: DynamicBrokerConfig
    image: MetadataImage
    log_manager: LogManager
    replica_manager: ReplicaManager
    world: "World"
    driver: Driver
    deadlines: Deadlines


class ClusterParts:
    """The parts of a member, as public attributes."""

    def __init__(self, around: Around) -> None:
        """Raises ConfigError if the listener between brokers asks for a login that is not set."""
        config = around.configs.current
        image, world, replicas = around.image, around.world, around.replica_manager
        broker_id = config.broker_id
        self._around = around
        self.store = around.store
        self.coordinators: dict[str, Coordinator] = {}
        """By the topic in which each keeps its state; notified of elections while registered."""
        self.fence = ControllerFence()
        self.image_changes = ImageChanges(world.clock)
        self.peers = Peers(
            config,
            PeerSurroundings(
                transport=world.transport,
                workers=world.workers,
                clock=world.clock,
                deadlines=around.deadlines,
                driver=around.driver,
                random=world.random,
            ),
        )
        self.settings = TopicSettings(around.store)
        self.topic_configs = TopicLogConfigs(
            image, around.configs, around.log_manager, known=self.settings.own
        )
        self.settings.changed = self._topic_config_changed
        self.broker_settings = BrokerSettings(around.store, around.configs, broker_id)
        self.channel = ControllerChannel(
            image=image,
            peers=self.peers,
            listener_name=config.inter_broker_listener,
            client_id=f"broker-{broker_id}-to-controller",
            clock=world.clock,
            longest_s=config.controller_socket_timeout_ms / 1000,
        )
        self.tasks = Tasks()
        """The controller's tasks beside the rest: its requests to brokers."""
        self.controller = ClusterController(
            store=around.store,
            settings=controller_settings(config),
            connect=self._controllers_peer,
            begin=self.tasks.begin,
            clock=world.clock,
            deadlines=around.deadlines,
            new_uuid=partial(random_uuid, world.random),
        )
        self.controller.is_registered = lambda: self.fence.broker_epoch != UNKNOWN_EPOCH
        self.leadership = Leadership(
            fence=self.fence,
            replicas=replicas,
            carry_out=partial(apply_delta, replicas),
            logs=around.log_manager,
            configs=self.settings,
            resolve=self.topic_configs.resolve,
            coordinators=self.coordinators,
            broker_id=broker_id,
        )
        self.stopping = Stopping(
            fence=self.fence, replicas=replicas, coordinators=self.coordinators
        )
        self.metadata_updates = MetadataUpdates(
            fence=self.fence,
            image=image,
            configs=self.settings,
            changes=self.image_changes,
            deleted=self._topics_deleted,
        )
        self.topics = TopicAdmin(
            AdminParts(
                store=around.store,
                image=image,
                changes=self.image_changes,
                settings=self.settings,
                configs=self.topic_configs,
                controller=self.controller,
                new_uuid=partial(random_uuid, world.random),
                random=world.random,
            )
        )
        self.features = NoFeatures()
        self.producer_ids = AllocatedBlocks(self._allocate, broker_id, self.broker_epoch)
        broker_peers = BrokerPeers(
            image,
            self.peers,
            listener_name=config.inter_broker_listener,
            client_id=f"broker-{broker_id}",
        )
        self.across = AcrossBrokers(image, broker_id, broker_peers.get)
        """The coordinators' parts that reach other brokers."""
        self.image_changes.listeners += [self.channel.drop_former, broker_peers.drop_gone]
        self.log_dir_events = LogDirEvents(around.store, broker_id)
        around.log_manager.directories.listeners.append(self.log_dir_events.directory_offline)
        self.registration = Registration(
            register=self._register, fence=self.fence, candidate=self.controller
        )
        self.broker = BrokerImage(broker_id=broker_id, endpoints=(), rack=config.broker_rack)
        """This broker as others see it; its endpoints are known when they are bound."""
        replicas.throttles = throttles = ReplicationThrottles(
            lambda: around.configs.current, world.clock.monotonic
        )
        self.fetchers = ReplicaFetchers(
            connect=self._leaders_peer,
            broker_id=broker_id,
            broker_epoch=self.broker_epoch,
            settings=FetchingSettings.from_config(config),
            table=replicas,
            clock=world.clock,
            throttle=throttles.follower,
        )
        self.isr_keeper = IsrKeeper(
            alter=self._alter_partition,
            broker_id=broker_id,
            broker_epoch=self.broker_epoch,
            partitions=replicas.partitions,
            wake=replicas.wake,
            lag_time_s=config.replica_lag_time_max_ms / 1000,
            clock=world.clock,
            statistics=replicas.isr_changes,
        )
        replicas.followers = self.fetchers
        replicas.rules = ClusterRules(
            monotonic=world.clock.monotonic,
            lag_time_s=config.replica_lag_time_max_ms / 1000,
            may_join=lambda one: image.broker(one) is not None,
            alter_isr=self.isr_keeper.send,
        )
        follow = around.configs.follow
        follow(lambda config: config, self.peers.use)
        follow(controller_settings, self.controller.reconfigure)
        follow(FetchingSettings.from_config, self.fetchers.reconfigure)

    # ---- what the parts ask of each other

    def broker_epoch(self) -> int:
        """The epoch of this broker's registration."""
        return self.fence.broker_epoch

    def _topic_config_changed(self, name: str, own: Mapping[str, str]) -> None:
        topic = self._around.image.topic(name)
        if topic is not None:
            self._around.image.set_topic(replace(topic, config=own))
        self.topic_configs.topic_changed(name, own)
        if own.get(_UNCLEAN) == "true":
            self.controller.unclean_elections_allowed(name)

    def _topics_deleted(self, names: Collection[str]) -> None:
        for coordinator in self.coordinators.values():
            coordinator.on_topics_deleted(names)

    def _controllers_peer(self, broker_id: int, endpoint: Listener) -> Peer:
        own_id = self._around.configs.current.broker_id
        return self.peers.to(broker_id, endpoint, f"controller-{own_id}")

    def _leaders_peer(self, broker_id: int, fetcher: int) -> Peer | None:
        config = self._around.configs.current
        endpoint = endpoint_of(self._around.image, broker_id, config.inter_broker_listener)
        if endpoint is None:
            return None
        return self.peers.to(broker_id, endpoint, f"broker-{config.broker_id}-fetcher-{fetcher}")

    async def _alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        answer: AlterPartitionResponse = await self.channel.ask_once(
            ApiKey.ALTER_PARTITION, request
        )
        return answer

    async def _allocate(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        answer: AllocateProducerIdsResponse = await self.channel.ask(
            ApiKey.ALLOCATE_PRODUCER_IDS, request, timeout_s=_BLOCK_WITHIN_S
        )
        return answer

    async def _register(self) -> int:
        return await register(
            self._around.store, self.broker, timestamp_ms=self._around.world.clock.wall_ms()
        )

    async def hand_over(self) -> bool:
        """Ask the controller to take over, if that is wanted; return whether it has."""
        config = self._around.configs.current
        if not config.controlled_shutdown_enable:
            return False
        return await hand_over(
            self.channel,
            attempts=config.controlled_shutdown_max_retries,
            backoff_s=config.controlled_shutdown_retry_backoff_ms / 1000,
            longest_s=config.controller_socket_timeout_ms / 1000,
            broker_id=config.broker_id,
            broker_epoch=self.broker_epoch,
        )


def controller_settings(config: BrokerConfig) -> ControllerSettings:
    """The part of the configuration that the controller uses."""
    return ControllerSettings(
        broker_id=config.broker_id,
        inter_broker_listener=config.inter_broker_listener,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_s=config.leader_imbalance_check_interval_seconds,
        leader_imbalance_per_broker_percentage=config.leader_imbalance_per_broker_percentage,
        request_timeout_s=config.controller_socket_timeout_ms / 1000,
        unclean_leader_election_enable=config.unclean_leader_election_enable,
        delete_topic_enable=config.delete_topic_enable,
    )
