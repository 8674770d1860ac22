"""The table of handlers: which APIs are served, in which versions, by which handler.

Only `broker.components` (which builds `Services`) and this table see everything; a handler gets the
two or three objects that it uses. ApiVersions advertises the `VERSIONS` of the handlers' modules
and nothing else: clients do not learn of an API without a handler. A row names what a principal
must be allowed (`accesses`), and the gate before the handlers checks it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from broker.api import (
    accesses,
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
from broker.api.accesses import Accesses
from broker.api.config_alteration import ConfigOwners
from broker.api.services import Services
from broker.api.transaction_gate import TransactionGate
from broker.coordinator.transactional_commits import TransactionalCommits
from broker.replication.down_converter import DownConverter
from broker.security.authorizer import ALLOW_ALL, Authorizer
from broker.security.gate import Gate
from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.request import Handler


class _HandlerModule(Protocol):
    """What the table reads from a handler's module."""

    @property
    def VERSIONS(self) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Row:
    """One API."""

    key: ApiKey
    module: _HandlerModule
    """Its `VERSIONS` (lowest, highest) are served."""
    access: Accesses
    """What a principal must be allowed before the handler is called."""
    make: "Callable[[Services], Handler]"


TABLE: Final = (
    # Data.
    Row(
        ApiKey.PRODUCE,
        produce,
        accesses.PRODUCE,
        lambda s: produce.ProduceHandler(
            s.replica_manager, TransactionGate(s.transaction_coordinator)
        ),
    ),
    Row(
        ApiKey.FETCH,
        fetch,
        accesses.FETCH,
        lambda s: fetch.FetchHandler(
            s.replica_manager,
            s.fetch_sessions,
            s.config.fetch_max_bytes,
            converter=DownConverter(s.looker, s.replica_manager.storage_failed),
            clock=s.clock,
        ),
    ),
    Row(
        ApiKey.LIST_OFFSETS,
        list_offsets,
        accesses.LIST_OFFSETS,
        lambda s: list_offsets.ListOffsetsHandler(s.replica_manager, s.looker.look),
    ),
    Row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        offset_for_leader_epoch,
        accesses.OFFSET_FOR_LEADER_EPOCH,
        lambda s: offset_for_leader_epoch.OffsetForLeaderEpochHandler(s.replica_manager),
    ),
    Row(
        ApiKey.DELETE_RECORDS,
        delete_records,
        accesses.DELETE_RECORDS,
        lambda s: delete_records.DeleteRecordsHandler(s.replica_manager),
    ),
    Row(
        ApiKey.INIT_PRODUCER_ID,
        init_producer_id,
        accesses.INIT_PRODUCER_ID,
        lambda s: init_producer_id.InitProducerIdHandler(s.producer_ids, s.transaction_coordinator),
    ),
    # Metadata and topics.
    Row(
        ApiKey.API_VERSIONS,
        api_versions,
        accesses.NONE,
        lambda s: api_versions.ApiVersionsHandler(
            ADVERTISED, s.features, s.image.cluster_id, s.config.broker_id
        ),
    ),
    Row(
        ApiKey.UPDATE_FEATURES,
        update_features,
        accesses.UPDATE_FEATURES,
        lambda s: update_features.UpdateFeaturesHandler(s.features),
    ),
    Row(
        ApiKey.METADATA,
        metadata,
        accesses.METADATA,
        lambda s: metadata.MetadataHandler(s.image, s.config, s.controller),
    ),
    Row(
        ApiKey.DESCRIBE_CLUSTER,
        describe_cluster,
        accesses.NONE,
        lambda s: describe_cluster.DescribeClusterHandler(s.image),
    ),
    Row(
        ApiKey.CREATE_TOPICS,
        create_topics,
        accesses.CREATE_TOPICS,
        lambda s: create_topics.CreateTopicsHandler(s.controller, s.broker_configs),
    ),
    Row(
        ApiKey.DELETE_TOPICS,
        delete_topics,
        accesses.DELETE_TOPICS,
        lambda s: delete_topics.DeleteTopicsHandler(s.controller, s.image),
    ),
    Row(
        ApiKey.CREATE_PARTITIONS,
        create_partitions,
        accesses.CREATE_PARTITIONS,
        lambda s: create_partitions.CreatePartitionsHandler(s.controller, s.image),
    ),
    Row(
        ApiKey.DESCRIBE_CONFIGS,
        describe_configs,
        accesses.DESCRIBE_CONFIGS,
        lambda s: describe_configs.DescribeConfigsHandler(s.image, s.broker_configs),
    ),
    Row(
        ApiKey.ALTER_CONFIGS,
        alter_configs,
        accesses.ALTER_CONFIGS,
        lambda s: alter_configs.AlterConfigsHandler(ConfigOwners(s.controller, s.broker_configs)),
    ),
    Row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        incremental_alter_configs,
        accesses.INCREMENTAL_ALTER_CONFIGS,
        lambda s: incremental_alter_configs.IncrementalAlterConfigsHandler(
            ConfigOwners(s.controller, s.broker_configs)
        ),
    ),
    Row(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        alter_replica_log_dirs,
        accesses.ALTER_REPLICA_LOG_DIRS,
        lambda s: alter_replica_log_dirs.AlterReplicaLogDirsHandler(s.log_mover),
    ),
    Row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        alter_partition_reassignments,
        accesses.ALTER_PARTITION_REASSIGNMENTS,
        lambda s: alter_partition_reassignments.AlterPartitionReassignmentsHandler(s.image),
    ),
    Row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        list_partition_reassignments,
        accesses.LIST_PARTITION_REASSIGNMENTS,
        lambda s: list_partition_reassignments.ListPartitionReassignmentsHandler(),
    ),
    Row(
        ApiKey.DESCRIBE_LOG_DIRS,
        describe_log_dirs,
        accesses.DESCRIBE_LOG_DIRS,
        lambda s: describe_log_dirs.DescribeLogDirsHandler(s.log_manager, s.volumes),
    ),
    # ACLs: there are none, and the handlers answer so.
    Row(
        ApiKey.DESCRIBE_ACLS,
        describe_acls,
        accesses.DESCRIBE_ACLS,
        lambda s: describe_acls.DescribeAclsHandler(),
    ),
    Row(
        ApiKey.CREATE_ACLS,
        create_acls,
        accesses.CREATE_ACLS,
        lambda s: create_acls.CreateAclsHandler(),
    ),
    Row(
        ApiKey.DELETE_ACLS,
        delete_acls,
        accesses.DELETE_ACLS,
        lambda s: delete_acls.DeleteAclsHandler(),
    ),
    # Groups and offsets.
    Row(
        ApiKey.FIND_COORDINATOR,
        find_coordinator,
        accesses.FIND_COORDINATOR,
        lambda s: find_coordinator.FindCoordinatorHandler(
            s.group_coordinator, s.transaction_coordinator, s.image, s.controller
        ),
    ),
    Row(
        ApiKey.JOIN_GROUP,
        join_group,
        accesses.JOIN_GROUP,
        lambda s: join_group.JoinGroupHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.SYNC_GROUP,
        sync_group,
        accesses.SYNC_GROUP,
        lambda s: sync_group.SyncGroupHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.HEARTBEAT,
        heartbeat,
        accesses.HEARTBEAT,
        lambda s: heartbeat.HeartbeatHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.LEAVE_GROUP,
        leave_group,
        accesses.LEAVE_GROUP,
        lambda s: leave_group.LeaveGroupHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.OFFSET_COMMIT,
        offset_commit,
        accesses.OFFSET_COMMIT,
        lambda s: offset_commit.OffsetCommitHandler(s.group_coordinator, s.image),
    ),
    Row(
        ApiKey.OFFSET_FETCH,
        offset_fetch,
        accesses.OFFSET_FETCH,
        lambda s: offset_fetch.OffsetFetchHandler(s.group_coordinator, s.image),
    ),
    Row(
        ApiKey.DESCRIBE_GROUPS,
        describe_groups,
        accesses.DESCRIBE_GROUPS,
        lambda s: describe_groups.DescribeGroupsHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.LIST_GROUPS,
        list_groups,
        accesses.LIST_GROUPS,
        lambda s: list_groups.ListGroupsHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.DELETE_GROUPS,
        delete_groups,
        accesses.DELETE_GROUPS,
        lambda s: delete_groups.DeleteGroupsHandler(s.group_coordinator),
    ),
    Row(
        ApiKey.OFFSET_DELETE,
        offset_delete,
        accesses.OFFSET_DELETE,
        lambda s: offset_delete.OffsetDeleteHandler(s.group_coordinator, s.image),
    ),
    # Transactions.
    Row(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        add_partitions_to_txn,
        accesses.ADD_PARTITIONS_TO_TXN,
        lambda s: add_partitions_to_txn.AddPartitionsToTxnHandler(
            s.transaction_coordinator, s.image
        ),
    ),
    Row(
        ApiKey.ADD_OFFSETS_TO_TXN,
        add_offsets_to_txn,
        accesses.ADD_OFFSETS_TO_TXN,
        lambda s: add_offsets_to_txn.AddOffsetsToTxnHandler(
            s.transaction_coordinator, s.group_coordinator
        ),
    ),
    Row(
        ApiKey.END_TXN,
        end_txn,
        accesses.END_TXN,
        lambda s: end_txn.EndTxnHandler(s.transaction_coordinator, s.producer_ids),
    ),
    Row(
        ApiKey.WRITE_TXN_MARKERS,
        write_txn_markers,
        accesses.WRITE_TXN_MARKERS,
        lambda s: write_txn_markers.WriteTxnMarkersHandler(s.marker_writer),
    ),
    Row(
        ApiKey.TXN_OFFSET_COMMIT,
        txn_offset_commit,
        accesses.TXN_OFFSET_COMMIT,
        lambda s: txn_offset_commit.TxnOffsetCommitHandler(
            TransactionalCommits(s.group_coordinator, s.transaction_coordinator), s.image
        ),
    ),
    Row(
        ApiKey.DESCRIBE_TRANSACTIONS,
        describe_transactions,
        accesses.DESCRIBE_TRANSACTIONS,
        lambda s: describe_transactions.DescribeTransactionsHandler(s.transaction_coordinator),
    ),
    Row(
        ApiKey.LIST_TRANSACTIONS,
        list_transactions,
        accesses.LIST_TRANSACTIONS,
        lambda s: list_transactions.ListTransactionsHandler(s.transaction_coordinator, s.clock),
    ),
    Row(
        ApiKey.DESCRIBE_PRODUCERS,
        describe_producers,
        accesses.DESCRIBE_PRODUCERS,
        lambda s: describe_producers.DescribeProducersHandler(s.replica_manager),
    ),
)

ADVERTISED: Final[dict[ApiKey, tuple[int, int]]] = {row.key: row.module.VERSIONS for row in TABLE}
"""API key to (lowest, highest) version: for ApiVersions, and to check the version of requests."""


def build_handlers(
    services: Services, authorizer: Authorizer = ALLOW_ALL
) -> "dict[ApiKey, Handler]":
    """One handler per advertised API, each behind the gate of `authorizer` (`security.gate`)."""

    def topic_name(topic_id: bytes) -> str | None:
        topic = services.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    gate = Gate(authorizer, topic_name)
    return {row.key: gate.guard(row.make(services), row.access) for row in TABLE}
