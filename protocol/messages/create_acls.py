"""CreateAcls (key 30): create ACLs.

* v2 is flexible, v3 adds a type of resource (users). Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

AclCreation = Group(
    "AclCreation",
    "resource_type"         / V("1+", Int8),
    "resource_name"         / V("1+", Str),
    "resource_pattern_type" / V("1+", Int8, default=3),
    "principal"             / V("1+", Str),
    "host"                  / V("1+", Str),
    "operation"             / V("1+", Int8),
    "permission_type"       / V("1+", Int8),
)

CreateAclsRequest = Api(
    ApiKey.CREATE_ACLS, "CreateAclsRequest", "1-3", "2+",
    "creations" / V("1+", Array(AclCreation)),
)

AclCreationResult = Group(
    "AclCreationResult",
    "error_code"    / V("1+", Int16),
    "error_message" / V("1+", Str, nullable="1+"),
)

CreateAclsResponse = Api(
    ApiKey.CREATE_ACLS, "CreateAclsResponse", "1-3", "2+",
    "throttle_time_ms" / V("1+", Int32),
    "results"          / V("1+", Array(AclCreationResult)),
)
