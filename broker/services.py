"""The components of a broker that the files of `broker.api` make their handlers from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from broker.cluster.client_quotas import ClientQuotas
    from broker.cluster.controller import Controller
    from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
    from broker.cluster.features import Features
    from broker.cluster.image import MetadataImage
    from broker.cluster.metadata_store import MetadataStore
    from broker.cluster.producer_ids import ProducerIdAllocator
    from broker.controller.controller_requests import ControllerRequests
    from broker.coordinator.group.coordinator import GroupCoordinator
    from broker.coordinator.marker_writer import MarkerWriter
    from broker.coordinator.transaction.coordinator import TransactionCoordinator
    from broker.coordinator.transaction.verification import RemoteCoordinators
    from broker.membership.cluster_parts import ClusterParts
    from broker.membership.no_features import NoFeatures
    from broker.membership.topic_admin import TopicAdmin
    from broker.quotas.quotas import Quotas
    from broker.replication.batch_looker import BatchLooker
    from broker.replication.fetch_session import FetchSessionCache
    from broker.replication.log_mover import LogMover
    from broker.replication.replica_manager import ReplicaManager
    from broker.security.acl_store import AclStore
    from broker.security.delegation_tokens import DelegationTokens
    from broker.security.permissions import Permissions
    from broker.world.clock import TaskClock
    from broker.world.workers import Workers
    from config.broker_config import BrokerConfig
    from protocol.api_keys import ApiKey
    from storage.filesystem import FileSystem
    from storage.log_manager import LogManager

    FinalizedFeatures: TypeAlias = "Features | NoFeatures"
    TopicChanger: TypeAlias = "Controller | TopicAdmin"
    """Changes topics: stand-alone, or as a member of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The components of a broker by name."""

    advertised: "Mapping[ApiKey, tuple[int, int]]"
    """Lowest and highest version of each API that is served (`broker.registry`)."""
    config: "BrokerConfig"
    """The configuration at start, with the broker id resolved."""
    broker_configs: "DynamicBrokerConfig"
    """The configuration in force, and its layers."""
    image: "MetadataImage"
    controller: "TopicChanger"
    features: "FinalizedFeatures"
    producer_ids: "ProducerIdAllocator"
    replica_manager: "ReplicaManager"
    fetch_sessions: "FetchSessionCache"
    group_coordinator: "GroupCoordinator"
    transaction_coordinator: "TransactionCoordinator"
    marker_writer: "MarkerWriter"
    clock: "TaskClock"
    log_manager: "LogManager"
    log_mover: "LogMover"
    volumes: "FileSystem"
    """The file system, which knows the sizes of volumes."""
    workers: "Workers"
    looker: "BatchLooker"
    quotas: "Quotas"
    """Measures clients against the quotas, and throttles them."""
    client_quotas: "ClientQuotas"
    """The quotas that are set."""
    store: "MetadataStore"
    delegation_tokens: "DelegationTokens | None" = None
    """None if `delegation.token.secret.key` is not set."""
    allowed: "Permissions | None" = None
    """The permissions of principals; None if no authorizer is configured: all may do everything."""
    remote_coordinators: "RemoteCoordinators | None" = None
    """The transaction coordinators of other brokers; None where there are no others."""
    acls: "AclStore | None" = None
    """The rules by which the authorizer decides; None without an authorizer."""
    cluster: "ClusterParts | None" = None
    """The parts of a member of a cluster; None stand-alone."""

    @property
    def controller_requests(self) -> "ControllerRequests | None":
        """The requests to the controller of a cluster; None stand-alone."""
        return None if self.cluster is None else self.cluster.controller.requests

    @property
    def in_cluster(self) -> "ClusterParts":
        """The parts of a member of a cluster, for APIs that only those have."""
        assert self.cluster is not None
        return self.cluster
