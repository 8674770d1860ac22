"""CreateAcls (key 30): make rules of access.

* v1 adds types of patterns, v2 is flexible, v3 adds a type of resource (users).
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

AclCreation = Group(
    "AclCreation",
    "resource_type"         / V("0+", Int8),
    "resource_name"         / V("0+", Str),
    "resource_pattern_type" / V("1+", Int8, default=3),
    "principal"             / V("0+", Str),
    "host"                  / V("0+", Str),
    "operation"             / V("0+", Int8),
    "permission_type"       / V("0+", Int8),
)

CreateAclsRequest = Api(
    ApiKey.CREATE_ACLS, "CreateAclsRequest", "0-3", "2+",
    "creations" / V("0+", Array(AclCreation)),
)

AclCreationResult = Group(
    "AclCreationResult",
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
)

CreateAclsResponse = Api(
    ApiKey.CREATE_ACLS, "CreateAclsResponse", "0-3", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(AclCreationResult)),
)
