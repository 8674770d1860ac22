"""JoinGroup (key 11): become a member of a group and take part in its next generation.

* v1 adds rebalance_timeout_ms; in v0 the session timeout stands for both. v2 adds the throttle
  time.
* v4 answers a first join with MEMBER_ID_REQUIRED and an id to join with.
* v5 adds group_instance_id, which names a static member (KIP-345).
* v6 is flexible. v7 returns the protocol type, and protocol_name may be null.
* v8 adds the reason. v9 adds skip_assignment, which tells the leader to keep the assignment.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Bytes, Group, Int16, Int32, Str, V

# fmt: off

JoinGroupRequestProtocol = Group(
    "JoinGroupRequestProtocol",
    "name"     / V("0+", Str),
    "metadata" / V("0+", Bytes),
)

JoinGroupRequest = Api(
    ApiKey.JOIN_GROUP, "JoinGroupRequest", "0-9", "6+",
    "group_id"             / V("0+", Str),
    "session_timeout_ms"   / V("0+", Int32),
    "rebalance_timeout_ms" / V("1+", Int32, default=-1),
    "member_id"            / V("0+", Str),
    "group_instance_id"    / V("5+", Str, nullable="5+"),
    "protocol_type"        / V("0+", Str),
    "protocols"            / V("0+", Array(JoinGroupRequestProtocol)),
    "reason"               / V("8+", Str, nullable="8+"),
)

JoinGroupResponseMember = Group(
    "JoinGroupResponseMember",
    "member_id"         / V("0+", Str),
    "group_instance_id" / V("5+", Str, nullable="5+"),
    "metadata"          / V("0+", Bytes),
)

JoinGroupResponse = Api(
    ApiKey.JOIN_GROUP, "JoinGroupResponse", "0-9", "6+",
    "throttle_time_ms" / V("2+", Int32),
    "error_code"       / V("0+", Int16),
    "generation_id"    / V("0+", Int32, default=-1),
    "protocol_type"    / V("7+", Str, nullable="7+"),
    "protocol_name"    / V("0+", Str, nullable="7+"),
    "leader"           / V("0+", Str),
    "skip_assignment"  / V("9+", Bool),
    "member_id"        / V("0+", Str),
    "members"          / V("0+", Array(JoinGroupResponseMember)),
)
