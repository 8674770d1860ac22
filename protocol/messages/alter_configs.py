"""AlterConfigs (key 33): replace the dynamic configs of topics and brokers.

A config that the request does not name goes back to its default.

* v2 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, V

# fmt: off

AlterableConfig = Group(
    "AlterableConfig",
    "name"  / V("0+", Str),
    "value" / V("0+", Str, nullable="0+"),
)

AlterConfigsResource = Group(
    "AlterConfigsResource",
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "configs"       / V("0+", Array(AlterableConfig)),
)

AlterConfigsRequest = Api(
    ApiKey.ALTER_CONFIGS, "AlterConfigsRequest", "0-2", "2+",
    "resources"     / V("0+", Array(AlterConfigsResource)),
    "validate_only" / V("0+", Bool),
)

AlterConfigsResourceResponse = Group(
    "AlterConfigsResourceResponse",
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
)

AlterConfigsResponse = Api(
    ApiKey.ALTER_CONFIGS, "AlterConfigsResponse", "0-2", "2+",
    "throttle_time_ms" / V("0+", Int32),
    "responses"        / V("0+", Array(AlterConfigsResourceResponse)),
)
