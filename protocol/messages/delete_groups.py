"""DeleteGroups (key 42): delete empty groups with their offsets.

* v2 is flexible; v3 adds the error message of each group.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, V

# fmt: off

DeleteGroupsRequest = Api(
    ApiKey.DELETE_GROUPS, "DeleteGroupsRequest", "0-3", "2+",
    "groups_names" / V("0+", Array(Str)),
)

DeletableGroupResult = Group(
    "DeletableGroupResult",
    "group_id"      / V("0+", Str),
    "error_code"    / V("0+", Int16),
    "error_message" / V("3+", Str, nullable="3+"),
)

DeleteGroupsResponse = Api(
    ApiKey.DELETE_GROUPS, "DeleteGroupsResponse", "0-3", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(DeletableGroupResult)),
)
