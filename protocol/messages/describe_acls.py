"""DescribeAcls (key 29): which rules of access there are.

* v1 adds types of patterns, v2 is flexible, v3 adds a type of resource (users).
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

DescribeAclsRequest = Api(
    ApiKey.DESCRIBE_ACLS, "DescribeAclsRequest", "0-3", "2+",
    "resource_type_filter" / V("0+", Int8),
    "resource_name_filter" / V("0+", Str, nullable="0+"),
    "pattern_type_filter"  / V("1+", Int8, default=3),
    "principal_filter"     / V("0+", Str, nullable="0+"),
    "host_filter"          / V("0+", Str, nullable="0+"),
    "operation"            / V("0+", Int8),
    "permission_type"      / V("0+", Int8),
)

AclDescription = Group(
    "AclDescription",
    "principal"       / V("0+", Str),
    "host"            / V("0+", Str),
    "operation"       / V("0+", Int8),
    "permission_type" / V("0+", Int8),
)

DescribeAclsResource = Group(
    "DescribeAclsResource",
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "pattern_type"  / V("1+", Int8, default=3),
    "acls"          / V("0+", Array(AclDescription)),
)

DescribeAclsResponse = Api(
    ApiKey.DESCRIBE_ACLS, "DescribeAclsResponse", "0-3", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "resources"        / V("0+", Array(DescribeAclsResource)),
)
