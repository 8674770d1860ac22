"""OffsetFetch (key 9): read the stored offsets of groups.

* v0 once read from ZooKeeper; its layout is that of v1. v2 lets null stand for all topics and adds
  a top-level error.
* v3 adds the throttle time; v5 leader epochs; v6 is flexible; v7 adds require_stable.
* v8 asks for many groups at once: groups replaces group_id and topics in the request, topics and
  error in the response.
* v9 adds member id and epoch (KIP-848). v10 names topics by id only.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int16, Int32, Int64, Str, Uuid, V

# fmt: off

OffsetFetchRequestTopic = Group(
    "OffsetFetchRequestTopic",
    "name"              / V("0-7", Str),
    "partition_indexes" / V("0-7", Array(Int32)),
)

OffsetFetchRequestTopics = Group(
    "OffsetFetchRequestTopics",
    "name"              / V("8-9", Str),
    "topic_id"          / V("10+", Uuid),
    "partition_indexes" / V("8+",  Array(Int32)),
)

OffsetFetchRequestGroup = Group(
    "OffsetFetchRequestGroup",
    "group_id"     / V("8+", Str),
    "member_id"    / V("9+", Str, nullable="9+"),
    "member_epoch" / V("9+", Int32, default=-1),
    "topics"       / V("8+", Array(OffsetFetchRequestTopics), nullable="8+"),
)

OffsetFetchRequest = Api(
    ApiKey.OFFSET_FETCH, "OffsetFetchRequest", "0-10", "6+",
    "group_id"       / V("0-7", Str),
    "topics"         / V("0-7", Array(OffsetFetchRequestTopic), nullable="2-7"),
    "groups"         / V("8+",  Array(OffsetFetchRequestGroup)),
    "require_stable" / V("7+",  Bool),
)

OffsetFetchResponsePartition = Group(
    "OffsetFetchResponsePartition",
    "partition_index"        / V("0-7", Int32),
    "committed_offset"       / V("0-7", Int64),
    "committed_leader_epoch" / V("5-7", Int32, default=-1),
    "metadata"               / V("0-7", Str, nullable="0-7"),
    "error_code"             / V("0-7", Int16),
)

OffsetFetchResponseTopic = Group(
    "OffsetFetchResponseTopic",
    "name"       / V("0-7", Str),
    "partitions" / V("0-7", Array(OffsetFetchResponsePartition)),
)

OffsetFetchResponsePartitions = Group(
    "OffsetFetchResponsePartitions",
    "partition_index"        / V("8+", Int32),
    "committed_offset"       / V("8+", Int64),
    "committed_leader_epoch" / V("8+", Int32, default=-1),
    "metadata"               / V("8+", Str, nullable="8+"),
    "error_code"             / V("8+", Int16),
)

OffsetFetchResponseTopics = Group(
    "OffsetFetchResponseTopics",
    "name"       / V("8-9", Str),
    "topic_id"   / V("10+", Uuid),
    "partitions" / V("8+",  Array(OffsetFetchResponsePartitions)),
)

OffsetFetchResponseGroup = Group(
    "OffsetFetchResponseGroup",
    "group_id"   / V("8+", Str),
    "topics"     / V("8+", Array(OffsetFetchResponseTopics)),
    "error_code" / V("8+", Int16),
)

OffsetFetchResponse = Api(
    ApiKey.OFFSET_FETCH, "OffsetFetchResponse", "0-10", "6+",
    "throttle_time_ms" / V("3+",  Int32),
    "topics"           / V("0-7", Array(OffsetFetchResponseTopic)),
    "error_code"       / V("2-7", Int16),
    "groups"           / V("8+",  Array(OffsetFetchResponseGroup)),
)
