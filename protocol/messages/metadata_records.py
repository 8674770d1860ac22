"""Records of KRaft's metadata log: what `__cluster_metadata-0` says about topics and access.

Declared are only the kinds with facts that the log directories lack: topic names, partitions,
configs, how far producer ids were handed out, and who may do what and how much of it (users, access
rules, quotas). `protocol.messages.metadata_frames` reads the frame around each.
`broker.cluster.kraft_log` reads these records; this broker never writes any.
"""

from protocol.schema import (
    Api,
    Array,
    Bool,
    Bytes,
    Float64,
    Group,
    Int8,
    Int32,
    Int64,
    Str,
    Uuid,
    V,
)

# fmt: off

TopicRecord = Api(
    None, "TopicRecord", "0", "0+",
    "name"     / V("0+", Str),
    "topic_id" / V("0+", Uuid),
)

# v1 adds the log directory of each replica, v2 eligible leader replicas.
PartitionRecord = Api(
    None, "PartitionRecord", "0-2", "0+",
    "partition_id"             / V("0+", Int32, default=-1),
    "topic_id"                 / V("0+", Uuid),
    "replicas"                 / V("0+", Array(Int32)),
    "isr"                      / V("0+", Array(Int32)),
    "removing_replicas"        / V("0+", Array(Int32)),
    "adding_replicas"          / V("0+", Array(Int32)),
    "leader"                   / V("0+", Int32, default=-1),
    "leader_recovery_state"    / V("0+", Int8, tag=0),
    "leader_epoch"             / V("0+", Int32, default=-1),
    "partition_epoch"          / V("0+", Int32, default=-1),
    "directories"              / V("1+", Array(Uuid)),
    "eligible_leader_replicas" / V("2+", Array(Int32), nullable="2+", tag=1, default=None),
    "last_known_elr"           / V("2+", Array(Int32), nullable="2+", tag=2, default=None),
)

ConfigRecord = Api(
    None, "ConfigRecord", "0", "0+",
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "name"          / V("0+", Str),
    "value"         / V("0+", Str, nullable="0+"),
)

RemoveTopicRecord = Api(
    None, "RemoveTopicRecord", "0", "0+",
    "topic_id" / V("0+", Uuid),
)

ProducerIdsRecord = Api(
    None, "ProducerIdsRecord", "0", "0+",
    "broker_id"        / V("0+", Int32),
    "broker_epoch"     / V("0+", Int64, default=-1),
    "next_producer_id" / V("0+", Int64),
)

UserScramCredentialRecord = Api(
    None, "UserScramCredentialRecord", "0", "0+",
    "name"       / V("0+", Str),
    "mechanism"  / V("0+", Int8),
    "salt"       / V("0+", Bytes),
    "stored_key" / V("0+", Bytes),
    "server_key" / V("0+", Bytes),
    "iterations" / V("0+", Int32),
)

RemoveUserScramCredentialRecord = Api(
    None, "RemoveUserScramCredentialRecord", "0", "0+",
    "name"      / V("0+", Str),
    "mechanism" / V("0+", Int8),
)

QuotaEntity = Group(
    "QuotaEntity",
    "entity_type" / V("0+", Str),
    "entity_name" / V("0+", Str, nullable="0+"),
)

ClientQuotaRecord = Api(
    None, "ClientQuotaRecord", "0", "0+",
    "entity" / V("0+", Array(QuotaEntity)),
    "key"    / V("0+", Str),
    "value"  / V("0+", Float64),
    "remove" / V("0+", Bool),
)

AccessControlEntryRecord = Api(
    None, "AccessControlEntryRecord", "0", "0+",
    "id"              / V("0+", Uuid),
    "resource_type"   / V("0+", Int8),
    "resource_name"   / V("0+", Str),
    "pattern_type"    / V("0+", Int8),
    "principal"       / V("0+", Str),
    "host"            / V("0+", Str),
    "operation"       / V("0+", Int8),
    "permission_type" / V("0+", Int8),
)

RemoveAccessControlEntryRecord = Api(
    None, "RemoveAccessControlEntryRecord", "0", "0+",
    "id" / V("0+", Uuid),
)

# Records between begin and end take effect together or, after an abort, not at all (KIP-868).

BeginTransactionRecord = Api(
    None, "BeginTransactionRecord", "0", "0+",
    "name" / V("0+", Str, nullable="0+", tag=0, default=None),
)

EndTransactionRecord = Api(None, "EndTransactionRecord", "0", "0+")

AbortTransactionRecord = Api(
    None, "AbortTransactionRecord", "0", "0+",
    "reason" / V("0+", Str, nullable="0+", tag=0, default=None),
)
