"""Fetch (key 1): read record batches, for consumers and followers.

Partitions are answered in the order of the request, which matters when max_bytes runs out (v3+).

* v1 adds the throttle time; v3 max_bytes; v4 isolation and aborted transactions; v5 log start
  offsets.
* v7 adds fetch sessions: a request may name only the partitions that changed, and
  forgotten_topics_data those to drop.
* v9 adds the client's leader epoch; v10 allows zstd; v11 adds racks and the preferred replica.
* v12 is flexible; the request adds the last fetched epoch, the response the diverging epoch and the
  current leader.
* v13 names topics by id only.
* v15 moves the replica's id into the tagged replica_state, with its epoch.
* v16 adds node_endpoints; v17 replica directory ids; v18 the follower's high watermark.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Int64, Records, Str, Uuid, V

# fmt: off

ReplicaState = Group(
    "ReplicaState",
    "replica_id"    / V("15+", Int32, default=-1),
    "replica_epoch" / V("15+", Int64, default=-1),
)

FetchPartition = Group(
    "FetchPartition",
    "partition"            / V("0+",  Int32),
    "current_leader_epoch" / V("9+",  Int32, default=-1),
    "fetch_offset"         / V("0+",  Int64),
    "last_fetched_epoch"   / V("12+", Int32, default=-1),
    "log_start_offset"     / V("5+",  Int64, default=-1),
    "partition_max_bytes"  / V("0+",  Int32),
    "replica_directory_id" / V("17+", Uuid, tag=0),
    "high_watermark"       / V("18+", Int64, default=0x7FFF_FFFF_FFFF_FFFF, tag=1),
)

FetchTopic = Group(
    "FetchTopic",
    "topic"      / V("0-12", Str),
    "topic_id"   / V("13+",  Uuid),
    "partitions" / V("0+",   Array(FetchPartition)),
)

ForgottenTopic = Group(
    "ForgottenTopic",
    "topic"      / V("7-12", Str),
    "topic_id"   / V("13+",  Uuid),
    "partitions" / V("7+",   Array(Int32)),
)

FetchRequest = Api(
    ApiKey.FETCH, "FetchRequest", "0-18", "12+",
    "cluster_id"            / V("12+",  Str, nullable="12+", tag=0),
    "replica_id"            / V("0-14", Int32, default=-1),
    "replica_state"         / V("15+",  ReplicaState, tag=1),
    "max_wait_ms"           / V("0+",   Int32),
    "min_bytes"             / V("0+",   Int32),
    "max_bytes"             / V("3+",   Int32, default=0x7FFF_FFFF),
    "isolation_level"       / V("4+",   Int8),
    "session_id"            / V("7+",   Int32),
    "session_epoch"         / V("7+",   Int32, default=-1),
    "topics"                / V("0+",   Array(FetchTopic)),
    "forgotten_topics_data" / V("7+",   Array(ForgottenTopic)),
    "rack_id"               / V("11+",  Str),
)

EpochEndOffset = Group(
    "EpochEndOffset",
    "epoch"      / V("12+", Int32, default=-1),
    "end_offset" / V("12+", Int64, default=-1),
)

LeaderIdAndEpoch = Group(
    "LeaderIdAndEpoch",
    "leader_id"    / V("12+", Int32, default=-1),
    "leader_epoch" / V("12+", Int32, default=-1),
)

SnapshotId = Group(
    "SnapshotId",
    "end_offset" / V("0+", Int64, default=-1),
    "epoch"      / V("0+", Int32, default=-1),
)

AbortedTransaction = Group(
    "AbortedTransaction",
    "producer_id"  / V("4+", Int64),
    "first_offset" / V("4+", Int64),
)

PartitionData = Group(
    "PartitionData",
    "partition_index"        / V("0+",  Int32),
    "error_code"             / V("0+",  Int16),
    "high_watermark"         / V("0+",  Int64),
    "last_stable_offset"     / V("4+",  Int64, default=-1),
    "log_start_offset"       / V("5+",  Int64, default=-1),
    "diverging_epoch"        / V("12+", EpochEndOffset, tag=0),
    "current_leader"         / V("12+", LeaderIdAndEpoch, tag=1),
    "snapshot_id"            / V("12+", SnapshotId, tag=2),
    "aborted_transactions"   / V("4+",  Array(AbortedTransaction), nullable="4+"),
    "preferred_read_replica" / V("11+", Int32, default=-1),
    "records"                / V("0+",  Records, nullable="0+"),
)

FetchableTopicResponse = Group(
    "FetchableTopicResponse",
    "topic"      / V("0-12", Str),
    "topic_id"   / V("13+",  Uuid),
    "partitions" / V("0+",   Array(PartitionData)),
)

NodeEndpoint = Group(
    "NodeEndpoint",
    "node_id" / V("16+", Int32),
    "host"    / V("16+", Str),
    "port"    / V("16+", Int32),
    "rack"    / V("16+", Str, nullable="16+"),
)

FetchResponse = Api(
    ApiKey.FETCH, "FetchResponse", "0-18", "12+",
    "throttle_time_ms" / V("1+",  Int32),
    "error_code"       / V("7+",  Int16),
    "session_id"       / V("7+",  Int32),
    "responses"        / V("0+",  Array(FetchableTopicResponse)),
    "node_endpoints"   / V("16+", Array(NodeEndpoint), tag=0),
)
