"""What a principal must be allowed for each API: Kafka's checks, as data for the registry's rows.

Above each stands where Kafka 4 asks. What Kafka asks while it answers is not here, because the
request does not name it: DESCRIBE_CONFIGS of topics that CreateTopics made, CREATE for topics that
Metadata makes, DESCRIBE of the topics in a described transaction. Where Kafka leaves out of a
listing what may not be seen, the access is that to see all (`answered`): filtering is a handler's.
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


NONE: Final[Accesses] = ()

# ---- data

# KafkaApis.handleProduceRequest. A null id of a transactional batch is the handler's to refuse.
PRODUCE: Final[Accesses] = (_WRITE_TRANSACTION, _topics(Operation.WRITE, "topic_data"))


def _of_follower(ctx: RequestContext, request: FetchRequest) -> bool:
    """As `Fetch` finds it out."""
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
# KafkaApis.handleInitProducerIdRequest. There WRITE of any topic will do as well (KIP-679).
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
    """Of version 0 an empty array asks for all topics, from version 1 on null does."""
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
# ControllerApis.authorizeAlterResource, both
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
    Access(
        _TOPIC,
        Operation.READ,
        by_version(_OFFSETS_BY_TOPIC_ID, each("topics", "name"), each("topics", "topic_id")),
    ),
)


def _groups_of_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    if ctx.api_version < 8:
        return (request.group_id,)
    return (group.group_id for group in request.groups)


def _topics_of_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Iterable[Name]:
    """Null stands for all that have offsets."""
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

# KafkaApis.handleAddPartitionsToTxnRequest: up to version 3 clients ask, then brokers
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
TXN_OFFSET_COMMIT: Final[Accesses] = (_WRITE_TRANSACTION, _READ_GROUP, _topics(Operation.READ))
# KafkaApis.handleDescribeTransactionsRequest
DESCRIBE_TRANSACTIONS: Final[Accesses] = (
    Access(_TRANSACTION, Operation.DESCRIBE, each("transactional_ids")),
)
# KafkaApis.handleListTransactionsRequest
LIST_TRANSACTIONS: Final[Accesses] = (Access(_TRANSACTION, Operation.DESCRIBE, answered),)
# KafkaApis.handleDescribeProducersRequest
DESCRIBE_PRODUCERS: Final[Accesses] = (_topics(Operation.READ),)
