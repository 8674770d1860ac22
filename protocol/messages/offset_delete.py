"""OffsetDelete (key 47): delete a group's offsets for given partitions.

One version, never flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

OffsetDeleteRequestPartition = Group(
    "OffsetDeleteRequestPartition",
    "partition_index" / V("0+", Int32),
)

OffsetDeleteRequestTopic = Group(
    "OffsetDeleteRequestTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(OffsetDeleteRequestPartition)),
)

OffsetDeleteRequest = Api(
    ApiKey.OFFSET_DELETE, "OffsetDeleteRequest", "0", "none",
    "group_id" / V("0+", Str),
    "topics"   / V("0+", Array(OffsetDeleteRequestTopic)),
)

OffsetDeleteResponsePartition = Group(
    "OffsetDeleteResponsePartition",
    "partition_index" / V("0+", Int32),
    "error_code"      / V("0+", Int16),
)

OffsetDeleteResponseTopic = Group(
    "OffsetDeleteResponseTopic",
    "name"       / V("0+", Str),
    "partitions" / V("0+", Array(OffsetDeleteResponsePartition)),
)

OffsetDeleteResponse = Api(
    ApiKey.OFFSET_DELETE, "OffsetDeleteResponse", "0", "none",
    "error_code"       / V("0+", Int16),
    "throttle_time_ms" / V("0+", Int32),
    "topics"           / V("0+", Array(OffsetDeleteResponseTopic)),
)
