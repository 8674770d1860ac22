"""ListGroups (key 16): list the groups that a broker coordinates.

* v1 adds the throttle time; v3 is flexible.
* v4 adds the filter by state, and states; v5 the filter by type, and types.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

ListGroupsRequest = Api(
    ApiKey.LIST_GROUPS, "ListGroupsRequest", "0-5", "3+",
    "states_filter" / V("4+", Array(Str)),
    "types_filter"  / V("5+", Array(Str)),
)

ListedGroup = Group(
    "ListedGroup",
    "group_id"      / V("0+", Str),
    "protocol_type" / V("0+", Str),
    "group_state"   / V("4+", Str),
    "group_type"    / V("5+", Str),
)

ListGroupsResponse = Api(
    ApiKey.LIST_GROUPS, "ListGroupsResponse", "0-5", "3+",
    "throttle_time_ms" / V("1+", Int32),
    "error_code"       / V("0+", Int16),
    "groups"           / V("0+", Array(ListedGroup)),
)
