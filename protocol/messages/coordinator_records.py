"""Versioned records that coordinators store, and bytes that group members exchange.

Each is an int16 version and a body of that version: `protocol.messages.versioned`. In a record's
key the version is the kind of record. In `__consumer_offsets` 0 and 1 are an offset commit, 2 is a
group's metadata, and higher numbers belong to the consumer, share and streams protocols; in
`__transaction_state` 0 is a transaction. A key of another number is not an error but a record of an
unknown kind, so check it with `peek_version` first.

A value of a version above the highest declared one cannot be read (KIP-915 lets newer Kafkas add
only tagged fields to a version, which are skipped). Subscriptions and assignments are different: a
newer version only appends fields, so it is read as the highest declared one.
"""

from protocol.schema import (
    Api,
    Array,
    Bytes,
    Group,
    Int8,
    Int16,
    Int32,
    Int64,
    Str,
    Uuid,
    V,
)

# fmt: off

# __consumer_offsets: one committed offset. Key version 0 is Kafka 0.8's; the layout is the same.

OffsetCommitKey = Api(
    None, "OffsetCommitKey", "0-1", "none",
    "group"     / V("0+", Str),
    "topic"     / V("0+", Str),
    "partition" / V("0+", Int32),
)

# Only v1 has an expiry; v3 adds the leader epoch; v4 is flexible and has the topic's id.
OffsetCommitValue = Api(
    None, "OffsetCommitValue", "0-4", "4+",
    "offset"           / V("0+", Int64),
    "leader_epoch"     / V("3+", Int32, default=-1),
    "metadata"         / V("0+", Str),
    "commit_timestamp" / V("0+", Int64),
    "expire_timestamp" / V("1",  Int64, default=-1),
    "topic_id"         / V("4+", Uuid, tag=0),
)

# __consumer_offsets: a classic group with its members, written with every completed rebalance.

GroupMetadataKey = Api(
    None, "GroupMetadataKey", "2", "none",
    "group" / V("2", Str),
)

MemberMetadata = Group(
    "MemberMetadata",
    "member_id"         / V("0+", Str),
    "group_instance_id" / V("3+", Str, nullable="3+"),
    "client_id"         / V("0+", Str),
    "client_host"       / V("0+", Str),
    "rebalance_timeout" / V("1+", Int32, default=-1),
    "session_timeout"   / V("0+", Int32),
    "subscription"      / V("0+", Bytes),
    "assignment"        / V("0+", Bytes),
)

# v1 adds rebalance timeouts; v2 the time of the state; v3 static members; v4 is flexible.
GroupMetadataValue = Api(
    None, "GroupMetadataValue", "0-4", "4+",
    "protocol_type"           / V("0+", Str),
    "generation"              / V("0+", Int32),
    "protocol"                / V("0+", Str, nullable="0+"),
    "leader"                  / V("0+", Str, nullable="0+"),
    "current_state_timestamp" / V("2+", Int64, default=-1),
    "members"                 / V("0+", Array(MemberMetadata)),
)

# Bytes within JoinGroup and SyncGroup, for protocol type "consumer". v1 adds the partitions already
# owned (cooperative rebalance), v2 the generation in which they were assigned, v3 the rack.

ConsumerProtocolTopicPartition = Group(
    "TopicPartition",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(Int32)),
)

ConsumerProtocolSubscription = Api(
    None, "ConsumerProtocolSubscription", "0-3", "none",
    "topics"           / V("0+", Array(Str)),
    "user_data"        / V("0+", Bytes, nullable="0+"),
    "owned_partitions" / V("1+", Array(ConsumerProtocolTopicPartition)),
    "generation_id"    / V("2+", Int32, default=-1),
    "rack_id"          / V("3+", Str, nullable="3+"),
)

ConsumerProtocolAssignment = Api(
    None, "ConsumerProtocolAssignment", "0-3", "none",
    "assigned_partitions" / V("0+", Array(ConsumerProtocolTopicPartition)),
    "user_data"           / V("0+", Bytes, nullable="0+"),
)

# __transaction_state: one transactional id.

TransactionLogKey = Api(
    None, "TransactionLogKey", "0", "none",
    "transactional_id" / V("0+", Str),
)

PartitionsSchema = Group(
    "PartitionsSchema",
    "topic"         / V("0+", Str),
    "partition_ids" / V("0+", Array(Int32)),
)

# v1 is flexible and adds what transaction version 2 needs (KIP-890).
TransactionLogValue = Api(
    None, "TransactionLogValue", "0-1", "1+",
    "producer_id"                          / V("0+", Int64),
    "previous_producer_id"                 / V("1+", Int64, default=-1, tag=0),
    "next_producer_id"                     / V("1+", Int64, default=-1, tag=1),
    "producer_epoch"                       / V("0+", Int16),
    "next_producer_epoch"                  / V("1+", Int16, default=-1, tag=3),
    "transaction_timeout_ms"               / V("0+", Int32),
    "transaction_status"                   / V("0+", Int8),
    "transaction_partitions"               / V("0+", Array(PartitionsSchema), nullable="0+"),
    "transaction_last_update_timestamp_ms" / V("0+", Int64),
    "transaction_start_timestamp_ms"       / V("0+", Int64),
    "client_transaction_version"           / V("1+", Int16, tag=2),
)

# The value of a control record that ends a transaction in a partition.

EndTxnMarker = Api(
    None, "EndTxnMarker", "0", "none",
    "coordinator_epoch" / V("0+", Int32),
)
