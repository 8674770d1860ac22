"""DescribeGroups (key 15): describe groups and their members.

* v1 adds the throttle time; v3 authorized operations; v4 static member names; v5 is flexible.
* v6 answers an unknown group with GROUP_ID_NOT_FOUND and a message; before, it was described as
  Dead.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Bytes, Group, Int16, Int32, Str, V

# fmt: off

DescribeGroupsRequest = Api(
    ApiKey.DESCRIBE_GROUPS, "DescribeGroupsRequest", "0-6", "5+",
    "groups"                        / V("0+", Array(Str)),
    "include_authorized_operations" / V("3+", Bool),
)

DescribedGroupMember = Group(
    "DescribedGroupMember",
    "member_id"         / V("0+", Str),
    "group_instance_id" / V("4+", Str, nullable="4+"),
    "client_id"         / V("0+", Str),
    "client_host"       / V("0+", Str),
    "member_metadata"   / V("0+", Bytes),
    "member_assignment" / V("0+", Bytes),
)

DescribedGroup = Group(
    "DescribedGroup",
    "error_code"            / V("0+", Int16),
    "error_message"         / V("6+", Str, nullable="6+"),
    "group_id"              / V("0+", Str),
    "group_state"           / V("0+", Str),
    "protocol_type"         / V("0+", Str),
    "protocol_data"         / V("0+", Str),
    "members"               / V("0+", Array(DescribedGroupMember)),
    "authorized_operations" / V("3+", Int32, default=-2147483648),
)

DescribeGroupsResponse = Api(
    ApiKey.DESCRIBE_GROUPS, "DescribeGroupsResponse", "0-6", "5+",
    "throttle_time_ms" / V("1+", Int32),
    "groups"           / V("0+", Array(DescribedGroup)),
)
