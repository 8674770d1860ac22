"""The components of a broker that the files of `broker.api` make their handlers from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.cluster.controller import Controller
    from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
    from broker.cluster.features import Features
    from broker.cluster.image import MetadataImage
    from broker.cluster.producer_ids import ProducerIdAllocator
    from broker.coordinator.group.coordinator import GroupCoordinator
    from broker.coordinator.marker_writer import MarkerWriter
    from broker.coordinator.transaction.coordinator import TransactionCoordinator
    from broker.replication.batch_looker import BatchLooker
    from broker.replication.fetch_session import FetchSessionCache
    from broker.replication.log_mover import LogMover
    from broker.replication.replica_manager import ReplicaManager
    from broker.world.clock import TaskClock
    from broker.world.workers import Workers
    from config.broker_config import BrokerConfig
    from protocol.api_keys import ApiKey
    from storage.filesystem import FileSystem
    from storage.log_manager import LogManager


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
    controller: "Controller"
    features: "Features"
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
