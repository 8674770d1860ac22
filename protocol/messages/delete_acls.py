"""DeleteAcls (key 31): delete the ACLs that filters match.

* v2 is flexible, v3 adds a type of resource (users). Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

DeleteAclsFilter = Group(
    "DeleteAclsFilter",
    "resource_type_filter" / V("1+", Int8),
    "resource_name_filter" / V("1+", Str, nullable="1+"),
    "pattern_type_filter"  / V("1+", Int8, default=3),
    "principal_filter"     / V("1+", Str, nullable="1+"),
    "host_filter"          / V("1+", Str, nullable="1+"),
    "operation"            / V("1+", Int8),
    "permission_type"      / V("1+", Int8),
)

DeleteAclsRequest = Api(
    ApiKey.DELETE_ACLS, "DeleteAclsRequest", "1-3", "2+",
    "filters" / V("1+", Array(DeleteAclsFilter)),
)

DeleteAclsMatchingAcl = Group(
    "DeleteAclsMatchingAcl",
    "error_code"      / V("1+", Int16),
    "error_message"   / V("1+", Str, nullable="1+"),
    "resource_type"   / V("1+", Int8),
    "resource_name"   / V("1+", Str),
    "pattern_type"    / V("1+", Int8, default=3),
    "principal"       / V("1+", Str),
    "host"            / V("1+", Str),
    "operation"       / V("1+", Int8),
    "permission_type" / V("1+", Int8),
)

DeleteAclsFilterResult = Group(
    "DeleteAclsFilterResult",
    "error_code"    / V("1+", Int16),
    "error_message" / V("1+", Str, nullable="1+"),
    "matching_acls" / V("1+", Array(DeleteAclsMatchingAcl)),
)

DeleteAclsResponse = Api(
    ApiKey.DELETE_ACLS, "DeleteAclsResponse", "1-3", "2+",
    "throttle_time_ms" / V("1+", Int32),
    "filter_results"   / V("1+", Array(DeleteAclsFilterResult)),
)
