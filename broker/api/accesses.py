"""What a principal must be allowed for each API: Kafka's checks, as data for the registry's rows.

The comment above each row names the method of Kafka 4 that makes the check. Checks that Kafka makes
while it answers are missing, because the request does not name their resources: DESCRIBE_CONFIGS of
topics that CreateTopics made, CREATE of topics that Metadata makes, DESCRIBE of the topics in a
described transaction. Kafka leaves out of a listing what the principal may not see; here a listing
needs the access to everything (`answered`), because only a handler could filter.
"""

from collections.abc import Iterable
from typing import Final

from broker.api.config_resources import ResourceType as ConfigResourceType
from broker.request import RequestContext
from broker.security.access import (
    CLUSTER_NAME,
    Access,
    Name,
    Names,
    Operation,
    ResourceType,
    answered,
    by_version,
    each,
    each_or_every,
    field,
    nothing,
    the_cluster,
    where,
)
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest
from protocol.messages.fetch import FetchRequest
from protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import OffsetFetchRequest

Accesses = tuple[Access, ...]
_AboutConfigs = DescribeConfigsRequest | AlterConfigsRequest | IncrementalAlterConfigsRequest

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_CLUSTER, _TRANSACTION = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID

_CLUSTER_ACTION: Final = Access(_CLUSTER, Operation.CLUSTER_ACTION)
_ALTER_CLUSTER: Final = Access(_CLUSTER, Operation.ALTER)
_DESCRIBE_CLUSTER: Final = Access(_CLUSTER, Operation.DESCRIBE)
_READ_GROUP: Final = Access(_GROUP, Operation.READ, field("group_id"))
_WRITE_TRANSACTION: Final = Access(_TRANSACTION, Operation.WRITE, field("transactional_id"))


def _topics(operation: Operation, array: str = "topics", unless: Access | None = None) -> Access:
    return Access(_TOPIC, operation, each(array, "name"), unless)


def _topics_by_id_from(version: int, operation: Operation, array: str = "topics") -> Access:
    """Topics by name; from `version` on by id."""
    return Access(
        _TOPIC, operation, by_version(version, each(array, "name"), each(array, "topic_id"))
    )


NONE: Final[Accesses] = ()

# ---- data

# KafkaApis.handleProduceRequest. The handler refuses a transactional batch without an id.
PRODUCE: Final[Accesses] = (
    _WRITE_TRANSACTION,
    _topics_by_id_from(13, Operation.WRITE, "topic_data"),
)


def _of_follower(ctx: RequestContext, request: FetchRequest) -> bool:
    """Return whether a replica asks, judged as the Fetch handler does."""
    state = request.replica_id if ctx.api_version < 15 else request.replica_state.replica_id
    return state >= 0


def _fetched(ctx: RequestContext, request: FetchRequest) -> Iterable[Name]:
    if not _of_follower(ctx, request):
        for topic in request.topics:
            yield topic.topic if ctx.api_version < 13 else topic.topic_id


# KafkaApis.handleFetchRequest
FETCH: Final[Accesses] = (
    Access(_CLUSTER, Operation.CLUSTER_ACTION, where(_of_follower, the_cluster)),
    Access(_TOPIC, Operation.READ, _fetched),
)
# KafkaApis.handleListOffsetRequest
LIST_OFFSETS: Final[Accesses] = (_topics(Operation.DESCRIBE),)
# KafkaApis.handleOffsetForLeaderEpochRequest
OFFSET_FOR_LEADER_EPOCH: Final[Accesses] = (
    Access(_TOPIC, Operation.DESCRIBE, each("topics", "topic"), unless=_CLUSTER_ACTION),
)
# KafkaApis.handleDeleteRecordsRequest
DELETE_RECORDS: Final[Accesses] = (_topics(Operation.DELETE),)
# KafkaApis.handleInitProducerIdRequest. Kafka also accepts WRITE of any topic (KIP-679).
INIT_PRODUCER_ID: Final[Accesses] = (
    _WRITE_TRANSACTION,
    Access(
        _CLUSTER,
        Operation.IDEMPOTENT_WRITE,
        where(lambda ctx, request: request.transactional_id is None, the_cluster),
    ),
)

# ---- metadata and topics

# ControllerApis.handleUpdateFeatures
UPDATE_FEATURES: Final[Accesses] = (_ALTER_CLUSTER,)


def _described(ctx: RequestContext, request: MetadataRequest) -> Iterable[Name]:
    """Yield the topics asked for. An empty array in v0, and null from v1 on, ask for all topics."""
    if ctx.api_version == 0 and not request.topics:
        return answered(ctx, request)
    return each_or_every("topics", "name", "topic_id")(ctx, request)


# KafkaApis.handleTopicMetadataRequest
METADATA: Final[Accesses] = (Access(_TOPIC, Operation.DESCRIBE, _described),)
# ControllerApis.createTopics
CREATE_TOPICS: Final[Accesses] = (
    _topics(Operation.CREATE, unless=Access(_CLUSTER, Operation.CREATE)),
)
# ControllerApis.deleteTopics
DELETE_TOPICS: Final[Accesses] = (
    Access(
        _TOPIC,
        Operation.DELETE,
        by_version(6, each("topic_names"), each("topics", "name", "topic_id")),
        unless=Access(_CLUSTER, Operation.DELETE),
    ),
)
# ControllerApis.createPartitions
CREATE_PARTITIONS: Final[Accesses] = (_topics(Operation.ALTER),)

_OF_THE_CLUSTER: Final = frozenset(
    (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER, ConfigResourceType.CLIENT_METRICS)
)


def _configs(operation: Operation) -> Accesses:
    def named(kind: ConfigResourceType) -> Names:
        return lambda ctx, request: (
            resource.resource_name
            for resource in request.resources
            if resource.resource_type == kind
        )

    def cluster(ctx: RequestContext, request: _AboutConfigs) -> Iterable[Name]:
        if any(resource.resource_type in _OF_THE_CLUSTER for resource in request.resources):
            yield CLUSTER_NAME

    return (
        Access(_TOPIC, operation, named(ConfigResourceType.TOPIC)),
        Access(_GROUP, operation, named(ConfigResourceType.GROUP)),
        Access(_CLUSTER, operation, cluster),
    )


# ConfigHelper.handleDescribeConfigsRequest
DESCRIBE_CONFIGS: Final[Accesses] = _configs(Operation.DESCRIBE_CONFIGS)
# ControllerApis.authorizeAlterResource, for both APIs
ALTER_CONFIGS: Final[Accesses] = _configs(Operation.ALTER_CONFIGS)
INCREMENTAL_ALTER_CONFIGS: Final[Accesses] = ALTER_CONFIGS
# KafkaApis.handleAlterReplicaLogDirsRequest
ALTER_REPLICA_LOG_DIRS: Final[Accesses] = (_ALTER_CLUSTER,)
# ControllerApis.handleAlterPartitionReassignments, ….handleListPartitionReassignments
ALTER_PARTITION_REASSIGNMENTS: Final[Accesses] = (_ALTER_CLUSTER,)
LIST_PARTITION_REASSIGNMENTS: Final[Accesses] = (_DESCRIBE_CLUSTER,)
# KafkaApis.handleDescribeLogDirsRequest
DESCRIBE_LOG_DIRS: Final[Accesses] = (_DESCRIBE_CLUSTER,)
# AclApis.handleDescribeAcls, ….handleCreateAcls, ….handleDeleteAcls
DESCRIBE_ACLS: Final[Accesses] = (_DESCRIBE_CLUSTER,)
CREATE_ACLS: Final[Accesses] = (_ALTER_CLUSTER,)
DELETE_ACLS: Final[Accesses] = (_ALTER_CLUSTER,)

# ---- groups and offsets

_OF_GROUP, _OF_TRANSACTION = 0, 1
"""Kinds of coordinators (`FindCoordinatorRequest.CoordinatorType`)."""


_keys: Final = by_version(4, field("key"), each("coordinator_keys"))

# KafkaApis.getCoordinator
FIND_COORDINATOR: Final[Accesses] = (
    Access(
        _GROUP, Operation.DESCRIBE, where(lambda ctx, request: request.key_type == _OF_GROUP, _keys)
    ),
    Access(
        _TRANSACTION,
        Operation.DESCRIBE,
        where(lambda ctx, request: request.key_type == _OF_TRANSACTION, _keys),
    ),
)
# KafkaApis.handleJoinGroupRequest, ….handleSyncGroupRequest, ….handleHeartbeatRequest,
# ….handleLeaveGroupRequest
JOIN_GROUP: Final[Accesses] = (_READ_GROUP,)
SYNC_GROUP: Final[Accesses] = (_READ_GROUP,)
HEARTBEAT: Final[Accesses] = (_READ_GROUP,)
LEAVE_GROUP: Final[Accesses] = (_READ_GROUP,)
_OFFSETS_BY_TOPIC_ID: Final = 10
"""From this version on OffsetCommit and OffsetFetch name topics by their ids."""

# KafkaApis.handleOffsetCommitRequest
OFFSET_COMMIT: Final[Accesses] = (
    _READ_GROUP,
    _topics_by_id_from(_OFFSETS_BY_TOPIC_ID, Operation.READ),
)


def _groups_of_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    if ctx.api_version < 8:
        return (request.group_id,)
    return (group.group_id for group in request.groups)


def _topics_of_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    """Yield the topics asked for; null asks for every topic with offsets."""
    by_id = ctx.api_version >= _OFFSETS_BY_TOPIC_ID
    named = each_or_every("topics", "topic_id" if by_id else "name")
    for asked in (request,) if ctx.api_version < 8 else request.groups:
        yield from named(ctx, asked)


# KafkaApis.fetchOffsetsForGroup, ….fetchAllOffsetsForGroup
OFFSET_FETCH: Final[Accesses] = (
    Access(_GROUP, Operation.DESCRIBE, _groups_of_fetch),
    Access(_TOPIC, Operation.DESCRIBE, _topics_of_fetch),
)
# KafkaApis.handleDescribeGroupsRequest
DESCRIBE_GROUPS: Final[Accesses] = (Access(_GROUP, Operation.DESCRIBE, each("groups")),)
# KafkaApis.handleListGroupsRequest
LIST_GROUPS: Final[Accesses] = (
    Access(_GROUP, Operation.DESCRIBE, answered, unless=_DESCRIBE_CLUSTER),
)
# KafkaApis.handleDeleteGroupsRequest
DELETE_GROUPS: Final[Accesses] = (Access(_GROUP, Operation.DELETE, each("groups_names")),)
# KafkaApis.handleOffsetDeleteRequest
OFFSET_DELETE: Final[Accesses] = (
    Access(_GROUP, Operation.DELETE, field("group_id")),
    _topics(Operation.READ),
)

# ---- transactions

# KafkaApis.handleAddPartitionsToTxnRequest: clients send versions 0-3, brokers version 4 and above
ADD_PARTITIONS_TO_TXN: Final[Accesses] = (
    Access(_CLUSTER, Operation.CLUSTER_ACTION, by_version(4, nothing, the_cluster)),
    Access(
        _TRANSACTION,
        Operation.WRITE,
        by_version(4, field("v3_and_below_transactional_id"), nothing),
    ),
    Access(_TOPIC, Operation.WRITE, by_version(4, each("v3_and_below_topics", "name"), nothing)),
)
# KafkaApis.handleAddOffsetsToTxnRequest
ADD_OFFSETS_TO_TXN: Final[Accesses] = (_WRITE_TRANSACTION, _READ_GROUP)
# KafkaApis.handleEndTxnRequest
END_TXN: Final[Accesses] = (_WRITE_TRANSACTION,)
# KafkaApis.handleWriteTxnMarkersRequest
WRITE_TXN_MARKERS: Final[Accesses] = (
    Access(_CLUSTER, Operation.CLUSTER_ACTION, unless=_ALTER_CLUSTER),
)
# KafkaApis.handleTxnOffsetCommitRequest
TXN_OFFSET_COMMIT: Final[Accesses] = (
    _WRITE_TRANSACTION,
    _READ_GROUP,
    _topics_by_id_from(6, Operation.READ),
)
# KafkaApis.handleDescribeTransactionsRequest
DESCRIBE_TRANSACTIONS: Final[Accesses] = (
    Access(_TRANSACTION, Operation.DESCRIBE, each("transactional_ids")),
)
# KafkaApis.handleListTransactionsRequest
LIST_TRANSACTIONS: Final[Accesses] = (Access(_TRANSACTION, Operation.DESCRIBE, answered),)
# KafkaApis.handleDescribeProducersRequest
DESCRIBE_PRODUCERS: Final[Accesses] = (_topics(Operation.READ),)
