"""OffsetCommit (key 8): store the offsets of a group.

* v1 adds generation and member id; only v1 has a commit timestamp per partition.
* v2-v4 have retention_time_ms; v3 adds the throttle time.
* v6 adds leader epochs; v7 group_instance_id; v8 is flexible.
* v9 also serves members of the consumer protocol, whose member epoch takes the generation's place
  (KIP-848).
* v10 names topics by id only.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

OffsetCommitRequestPartition = Group(
    "OffsetCommitRequestPartition",
    "partition_index"        / V("0+", Int32),
    "committed_offset"       / V("0+", Int64),
    "committed_leader_epoch" / V("6+", Int32, default=-1),
    "commit_timestamp"       / V("1",  Int64, default=-1),
    "committed_metadata"     / V("0+", Str, nullable="0+"),
)

OffsetCommitRequestTopic = Group(
    "OffsetCommitRequestTopic",
    "name"       / V("0-9", Str),
    "topic_id"   / V("10+", Uuid),
    "partitions" / V("0+",  Array(OffsetCommitRequestPartition)),
)

OffsetCommitRequest = Api(
    ApiKey.OFFSET_COMMIT, "OffsetCommitRequest", "0-10", "8+",
    "group_id"                      / V("0+",  Str),
    "generation_id_or_member_epoch" / V("1+",  Int32, default=-1),
    "member_id"                     / V("1+",  Str),
    "group_instance_id"             / V("7+",  Str, nullable="7+"),
    "retention_time_ms"             / V("2-4", Int64, default=-1),
    "topics"                        / V("0+",  Array(OffsetCommitRequestTopic)),
)

OffsetCommitResponsePartition = Group(
    "OffsetCommitResponsePartition",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

OffsetCommitResponseTopic = Group(
    "OffsetCommitResponseTopic",
    "name"       / V("0-9", Str),
    "topic_id"   / V("10+", Uuid),
    "partitions" / V("0+",  Array(OffsetCommitResponsePartition)),
)

OffsetCommitResponse = Api(
    ApiKey.OFFSET_COMMIT, "OffsetCommitResponse", "0-10", "8+",
    "throttle_time_ms" / V("3+", Int32),
    "topics"           / V("0+", Array(OffsetCommitResponseTopic)),
)
