"""The table of handlers: what is served, in which versions, by what.

Only `broker.server` (which builds `Services`) and this table see everything; a handler gets the two
or three objects that it uses. What is advertised is what the handlers' modules say in `VERSIONS`,
and nothing else: an API without a handler is not known to clients.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from broker.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
from broker.api.config_alteration import ConfigOwners
from broker.api.transaction_gate import TransactionGate
from broker.coordinator.transactional_commits import TransactionalCommits
from broker.replication.down_converter import DownConverter
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.api.describe_log_dirs import Volumes
    from broker.api.in_steps import InSteps
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
    from broker.request import Handler
    from broker.world.clock import Clock
    from broker.world.workers import Workers
    from config.broker_config import BrokerConfig
    from storage.log_manager import LogManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What handlers are made of."""

    config: "BrokerConfig"
    """As it was at start, with the broker id resolved."""
    broker_configs: "DynamicBrokerConfig"
    """As it is now."""
    image: "MetadataImage"
    controller: "Controller"
    features: "Features"
    producer_ids: "ProducerIdAllocator"
    replica_manager: "ReplicaManager"
    fetch_sessions: "FetchSessionCache"
    group_coordinator: "GroupCoordinator"
    transaction_coordinator: "TransactionCoordinator"
    marker_writer: "MarkerWriter"
    clock: "Clock"
    log_manager: "LogManager"
    log_mover: "LogMover"
    volumes: "Volumes"
    """The file system, asked for the size of volumes."""
    workers: "Workers"
    looker: "BatchLooker"
    in_steps: "InSteps"


@dataclass(frozen=True, slots=True)
class _Entry:
    key: ApiKey
    module: Any
    make: Callable[[Services], Any]


_TABLE: Final = (
    # Data.
    _Entry(
        ApiKey.PRODUCE,
        produce,
        lambda s: produce.ProduceHandler(
            s.replica_manager, TransactionGate(s.transaction_coordinator)
        ),
    ),
    _Entry(
        ApiKey.FETCH,
        fetch,
        lambda s: fetch.FetchHandler(
            s.replica_manager,
            s.fetch_sessions,
            s.config.fetch_max_bytes,
            converter=DownConverter(s.looker, s.replica_manager.storage_failed),
            clock=s.clock,
        ),
    ),
    _Entry(
        ApiKey.LIST_OFFSETS,
        list_offsets,
        lambda s: list_offsets.ListOffsetsHandler(s.replica_manager, s.in_steps),
    ),
    _Entry(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        offset_for_leader_epoch,
        lambda s: offset_for_leader_epoch.OffsetForLeaderEpochHandler(
            s.replica_manager, s.in_steps
        ),
    ),
    _Entry(
        ApiKey.DELETE_RECORDS,
        delete_records,
        lambda s: delete_records.DeleteRecordsHandler(s.replica_manager),
    ),
    _Entry(
        ApiKey.INIT_PRODUCER_ID,
        init_producer_id,
        lambda s: init_producer_id.InitProducerIdHandler(s.producer_ids, s.transaction_coordinator),
    ),
    # Metadata and topics.
    _Entry(
        ApiKey.API_VERSIONS,
        api_versions,
        lambda s: api_versions.ApiVersionsHandler(ADVERTISED, s.features),
    ),
    _Entry(
        ApiKey.UPDATE_FEATURES,
        update_features,
        lambda s: update_features.UpdateFeaturesHandler(s.features),
    ),
    _Entry(
        ApiKey.METADATA,
        metadata,
        lambda s: metadata.MetadataHandler(s.image, s.config, s.controller),
    ),
    _Entry(
        ApiKey.DESCRIBE_CLUSTER,
        describe_cluster,
        lambda s: describe_cluster.DescribeClusterHandler(s.image),
    ),
    _Entry(
        ApiKey.CREATE_TOPICS,
        create_topics,
        lambda s: create_topics.CreateTopicsHandler(s.controller, s.broker_configs, s.clock),
    ),
    _Entry(
        ApiKey.DELETE_TOPICS,
        delete_topics,
        lambda s: delete_topics.DeleteTopicsHandler(s.controller, s.image),
    ),
    _Entry(
        ApiKey.CREATE_PARTITIONS,
        create_partitions,
        lambda s: create_partitions.CreatePartitionsHandler(s.controller, s.image, s.clock),
    ),
    _Entry(
        ApiKey.DESCRIBE_CONFIGS,
        describe_configs,
        lambda s: describe_configs.DescribeConfigsHandler(s.image, s.broker_configs),
    ),
    _Entry(
        ApiKey.ALTER_CONFIGS,
        alter_configs,
        lambda s: alter_configs.AlterConfigsHandler(ConfigOwners(s.controller, s.broker_configs)),
    ),
    _Entry(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        incremental_alter_configs,
        lambda s: incremental_alter_configs.IncrementalAlterConfigsHandler(
            ConfigOwners(s.controller, s.broker_configs)
        ),
    ),
    _Entry(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        alter_replica_log_dirs,
        lambda s: alter_replica_log_dirs.AlterReplicaLogDirsHandler(s.log_mover),
    ),
    _Entry(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        alter_partition_reassignments,
        lambda s: alter_partition_reassignments.AlterPartitionReassignmentsHandler(s.image),
    ),
    _Entry(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        list_partition_reassignments,
        lambda s: list_partition_reassignments.ListPartitionReassignmentsHandler(),
    ),
    _Entry(
        ApiKey.DESCRIBE_LOG_DIRS,
        describe_log_dirs,
        lambda s: describe_log_dirs.DescribeLogDirsHandler(s.log_manager, s.volumes, s.workers),
    ),
    # Rules of access: there are none, and clients are told so.
    _Entry(ApiKey.DESCRIBE_ACLS, describe_acls, lambda s: describe_acls.DescribeAclsHandler()),
    _Entry(ApiKey.CREATE_ACLS, create_acls, lambda s: create_acls.CreateAclsHandler()),
    _Entry(ApiKey.DELETE_ACLS, delete_acls, lambda s: delete_acls.DeleteAclsHandler()),
    # Groups and offsets.
    _Entry(
        ApiKey.FIND_COORDINATOR,
        find_coordinator,
        lambda s: find_coordinator.FindCoordinatorHandler(
            s.group_coordinator, s.transaction_coordinator, s.image, s.controller
        ),
    ),
    _Entry(
        ApiKey.JOIN_GROUP, join_group, lambda s: join_group.JoinGroupHandler(s.group_coordinator)
    ),
    _Entry(
        ApiKey.SYNC_GROUP, sync_group, lambda s: sync_group.SyncGroupHandler(s.group_coordinator)
    ),
    _Entry(ApiKey.HEARTBEAT, heartbeat, lambda s: heartbeat.HeartbeatHandler(s.group_coordinator)),
    _Entry(
        ApiKey.LEAVE_GROUP,
        leave_group,
        lambda s: leave_group.LeaveGroupHandler(s.group_coordinator),
    ),
    _Entry(
        ApiKey.OFFSET_COMMIT,
        offset_commit,
        lambda s: offset_commit.OffsetCommitHandler(s.group_coordinator, s.image),
    ),
    _Entry(
        ApiKey.OFFSET_FETCH,
        offset_fetch,
        lambda s: offset_fetch.OffsetFetchHandler(s.group_coordinator, s.image),
    ),
    _Entry(
        ApiKey.DESCRIBE_GROUPS,
        describe_groups,
        lambda s: describe_groups.DescribeGroupsHandler(s.group_coordinator),
    ),
    _Entry(
        ApiKey.LIST_GROUPS,
        list_groups,
        lambda s: list_groups.ListGroupsHandler(s.group_coordinator),
    ),
    _Entry(
        ApiKey.DELETE_GROUPS,
        delete_groups,
        lambda s: delete_groups.DeleteGroupsHandler(s.group_coordinator),
    ),
    _Entry(
        ApiKey.OFFSET_DELETE,
        offset_delete,
        lambda s: offset_delete.OffsetDeleteHandler(s.group_coordinator, s.image),
    ),
    # Transactions.
    _Entry(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        add_partitions_to_txn,
        lambda s: add_partitions_to_txn.AddPartitionsToTxnHandler(
            s.transaction_coordinator, s.image
        ),
    ),
    _Entry(
        ApiKey.ADD_OFFSETS_TO_TXN,
        add_offsets_to_txn,
        lambda s: add_offsets_to_txn.AddOffsetsToTxnHandler(
            s.transaction_coordinator, s.group_coordinator
        ),
    ),
    _Entry(
        ApiKey.END_TXN,
        end_txn,
        lambda s: end_txn.EndTxnHandler(s.transaction_coordinator, s.producer_ids),
    ),
    _Entry(
        ApiKey.WRITE_TXN_MARKERS,
        write_txn_markers,
        lambda s: write_txn_markers.WriteTxnMarkersHandler(s.marker_writer),
    ),
    _Entry(
        ApiKey.TXN_OFFSET_COMMIT,
        txn_offset_commit,
        lambda s: txn_offset_commit.TxnOffsetCommitHandler(
            TransactionalCommits(s.group_coordinator, s.transaction_coordinator), s.image
        ),
    ),
    _Entry(
        ApiKey.DESCRIBE_TRANSACTIONS,
        describe_transactions,
        lambda s: describe_transactions.DescribeTransactionsHandler(s.transaction_coordinator),
    ),
    _Entry(
        ApiKey.LIST_TRANSACTIONS,
        list_transactions,
        lambda s: list_transactions.ListTransactionsHandler(s.transaction_coordinator, s.clock),
    ),
    _Entry(
        ApiKey.DESCRIBE_PRODUCERS,
        describe_producers,
        lambda s: describe_producers.DescribeProducersHandler(s.replica_manager),
    ),
)

ADVERTISED: Final[dict[ApiKey, tuple[int, int]]] = {
    entry.key: entry.module.VERSIONS for entry in _TABLE
}
"""API key to (lowest, highest) version: what ApiVersions says and requests are checked against."""


def build_handlers(services: Services) -> "dict[ApiKey, Handler]":
    """One handler per advertised API."""
    return {entry.key: entry.make(services) for entry in _TABLE}
