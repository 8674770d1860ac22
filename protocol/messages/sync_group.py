"""SyncGroup (key 14): the group's leader sends the assignment, each member gets its part.

* v1 adds the throttle time; v3 group_instance_id; v4 is flexible.
* v5 adds protocol type and name, which the coordinator checks and returns (KIP-559).
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bytes, Group, Int16, Int32, Str, V

# fmt: off

SyncGroupRequestAssignment = Group(
    "SyncGroupRequestAssignment",
    "member_id"  / V("0+", Str),
    "assignment" / V("0+", Bytes),
)

SyncGroupRequest = Api(
    ApiKey.SYNC_GROUP, "SyncGroupRequest", "0-5", "4+",
    "group_id"          / V("0+", Str),
    "generation_id"     / V("0+", Int32),
    "member_id"         / V("0+", Str),
    "group_instance_id" / V("3+", Str, nullable="3+"),
    "protocol_type"     / V("5+", Str, nullable="5+"),
    "protocol_name"     / V("5+", Str, nullable="5+"),
    "assignments"       / V("0+", Array(SyncGroupRequestAssignment)),
)

SyncGroupResponse = Api(
    ApiKey.SYNC_GROUP, "SyncGroupResponse", "0-5", "4+",
    "throttle_time_ms" / V("1+", Int32),
    "error_code"       / V("0+", Int16),
    "protocol_type"    / V("5+", Str, nullable="5+"),
    "protocol_name"    / V("5+", Str, nullable="5+"),
    "assignment"       / V("0+", Bytes),
)
