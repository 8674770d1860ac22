"""IncrementalAlterConfigs (key 44): change single configs of topics and brokers.

Operations: 0 set, 1 delete, 2 append, 3 subtract.

* v1 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, V

# fmt: off

AlterableConfig = Group(
    "AlterableConfig",
    "name"             / V("0+", Str),
    "config_operation" / V("0+", Int8),
    "value"            / V("0+", Str, nullable="0+"),
)

AlterConfigsResource = Group(
    "AlterConfigsResource",
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "configs"       / V("0+", Array(AlterableConfig)),
)

IncrementalAlterConfigsRequest = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigsRequest", "0-1", "1+",
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

IncrementalAlterConfigsResponse = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS, "IncrementalAlterConfigsResponse", "0-1", "1+",
    "throttle_time_ms" / V("0+", Int32),
    "responses"        / V("0+", Array(AlterConfigsResourceResponse)),
)
