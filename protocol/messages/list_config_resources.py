"""ListConfigResources (key 74): list the resources that may have configs (KIP-1142).

Flexible from its first version.

* v0 lists the resources for client metrics alone (KIP-714, then ListClientMetricsResources).
* v1 asks for types of resources, and the answer says which each one is.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

ListConfigResourcesRequest = Api(
    ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResourcesRequest", "0-1", "0+",
    "resource_types" / V("1+", Array(Int8)),
)

ListedConfigResource = Group(
    "ListedConfigResource",
    "resource_name" / V("0+", Str),
    "resource_type" / V("1+", Int8, default=16),
)

ListConfigResourcesResponse = Api(
    ApiKey.LIST_CONFIG_RESOURCES, "ListConfigResourcesResponse", "0-1", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "config_resources" / V("0+", Array(ListedConfigResource)),
)
