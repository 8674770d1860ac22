"""ListOffsets (key 2): find offsets by timestamp.

Negative timestamps ask for special offsets: -1 latest, -2 earliest, -3 (v7) the record with the
greatest timestamp, -4 (v8) earliest on local disk, -5 (v9) latest in tiered storage, -6 (v11)
earliest not yet uploaded.

* v0 answers with a list of segment base offsets; v1 with one offset and its timestamp.
* v2 adds isolation and the throttle time; v4 leader epochs; v5 may answer OFFSET_NOT_AVAILABLE.
* v6 is flexible. v10 adds a timeout for answers that come from tiered storage.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Int64, Str, V

# fmt: off

ListOffsetsPartition = Group(
    "ListOffsetsPartition",
    "partition_index"      / V("0+", Int32),
    "current_leader_epoch" / V("4+", Int32, default=-1),
    "timestamp"            / V("0+", Int64),
    "max_num_offsets"      / V("0",  Int32, default=1),
)

ListOffsetsTopic = Group(
    "ListOffsetsTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(ListOffsetsPartition)),
)

ListOffsetsRequest = Api(
    ApiKey.LIST_OFFSETS, "ListOffsetsRequest", "0-11", "6+",
    "replica_id"      / V("0+",  Int32),
    "isolation_level" / V("2+",  Int8),
    "topics"          / V("0+",  Array(ListOffsetsTopic)),
    "timeout_ms"      / V("10+", Int32),
)

ListOffsetsPartitionResponse = Group(
    "ListOffsetsPartitionResponse",
    "partition_index"   / V("0+", Int32),
    "error_code"        / V("0+", Int16),
    "old_style_offsets" / V("0",  Array(Int64)),
    "timestamp"         / V("1+", Int64, default=-1),
    "offset"            / V("1+", Int64, default=-1),
    "leader_epoch"      / V("4+", Int32, default=-1),
)

ListOffsetsTopicResponse = Group(
    "ListOffsetsTopicResponse",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(ListOffsetsPartitionResponse)),
)

ListOffsetsResponse = Api(
    ApiKey.LIST_OFFSETS, "ListOffsetsResponse", "0-11", "6+",
    "throttle_time_ms" / V("2+", Int32),
    "topics"           / V("0+", Array(ListOffsetsTopicResponse)),
)
