"""OffsetForLeaderEpoch (key 23): find where a leader epoch ends.

* v1 returns the epoch as well; v2 adds the client's current leader epoch, and the throttle time.
* v3 adds replica_id: -1 for a consumer, -2 for a debugging consumer, else the follower's id.
* v4 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Int64, Str, V

# fmt: off

OffsetForLeaderPartition = Group(
    "OffsetForLeaderPartition",
    "partition"            / V("0+", Int32),
    "current_leader_epoch" / V("2+", Int32, default=-1),
    "leader_epoch"         / V("0+", Int32),
)

OffsetForLeaderTopic = Group(
    "OffsetForLeaderTopic",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(OffsetForLeaderPartition)),
)

OffsetForLeaderEpochRequest = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpochRequest", "0-4", "4+",
    "replica_id" / V("3+", Int32, default=-2),
    "topics"     / V("0+", Array(OffsetForLeaderTopic)),
)

EpochEndOffset = Group(
    "EpochEndOffset",
    "error_code"   / V("0+", Int16),
    "partition"    / V("0+", Int32),
    "leader_epoch" / V("1+", Int32, default=-1),
    "end_offset"   / V("0+", Int64, default=-1),
)

OffsetForLeaderTopicResult = Group(
    "OffsetForLeaderTopicResult",
    "topic"      / V("0+", Str),
    "partitions" / V("0+", Array(EpochEndOffset)),
)

OffsetForLeaderEpochResponse = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpochResponse", "0-4", "4+",
    "throttle_time_ms" / V("2+", Int32),
    "topics"           / V("0+", Array(OffsetForLeaderTopicResult)),
)
