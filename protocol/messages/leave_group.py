"""LeaveGroup (key 13): leave a group.

* v1 adds the throttle time.
* v3 takes many members, each by member id or instance id, with a result for each.
* v4 is flexible; v5 adds the reason.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

MemberIdentity = Group(
    "MemberIdentity",
    "member_id"         / V("3+", Str),
    "group_instance_id" / V("3+", Str, nullable="3+"),
    "reason"            / V("5+", Str, nullable="5+"),
)

LeaveGroupRequest = Api(
    ApiKey.LEAVE_GROUP, "LeaveGroupRequest", "0-5", "4+",
    "group_id"  / V("0+",  Str),
    "member_id" / V("0-2", Str),
    "members"   / V("3+",  Array(MemberIdentity)),
)

MemberResponse = Group(
    "MemberResponse",
    "member_id"         / V("3+", Str),
    "group_instance_id" / V("3+", Str, nullable="3+"),
    "error_code"        / V("3+", Int16),
)

LeaveGroupResponse = Api(
    ApiKey.LEAVE_GROUP, "LeaveGroupResponse", "0-5", "4+",
    "throttle_time_ms" / V("1+", Int32),
    "error_code"       / V("0+", Int16),
    "members"          / V("3+", Array(MemberResponse)),
)
