"""DescribeAcls (key 29): list the ACLs that a filter matches.

* v2 is flexible, v3 adds a type of resource (users). Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

DescribeAclsRequest = Api(
    ApiKey.DESCRIBE_ACLS, "DescribeAclsRequest", "1-3", "2+",
    "resource_type_filter" / V("1+", Int8),
    "resource_name_filter" / V("1+", Str, nullable="1+"),
    "pattern_type_filter"  / V("1+", Int8, default=3),
    "principal_filter"     / V("1+", Str, nullable="1+"),
    "host_filter"          / V("1+", Str, nullable="1+"),
    "operation"            / V("1+", Int8),
    "permission_type"      / V("1+", Int8),
)

AclDescription = Group(
    "AclDescription",
    "principal"       / V("1+", Str),
    "host"            / V("1+", Str),
    "operation"       / V("1+", Int8),
    "permission_type" / V("1+", Int8),
)

DescribeAclsResource = Group(
    "DescribeAclsResource",
    "resource_type" / V("1+", Int8),
    "resource_name" / V("1+", Str),
    "pattern_type"  / V("1+", Int8, default=3),
    "acls"          / V("1+", Array(AclDescription)),
)

DescribeAclsResponse = Api(
    ApiKey.DESCRIBE_ACLS, "DescribeAclsResponse", "1-3", "2+",
    "throttle_time_ms" / V("1+", Int32),
    "error_code"       / V("1+", Int16),
    "error_message"    / V("1+", Str, nullable="1+"),
    "resources"        / V("1+", Array(DescribeAclsResource)),
)
