"""DescribeConfigs (key 32): read the configs of topics and brokers.

* v0 has is_default; v1 replaces it with config_source, and adds synonyms on request.
* v3 adds types, and documentation on request; v4 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Group, Int8, Int16, Int32, Str, V

# fmt: off

DescribeConfigsResource = Group(
    "DescribeConfigsResource",
    "resource_type"      / V("0+", Int8),
    "resource_name"      / V("0+", Str),
    "configuration_keys" / V("0+", Array(Str), nullable="0+"),
)

DescribeConfigsRequest = Api(
    ApiKey.DESCRIBE_CONFIGS, "DescribeConfigsRequest", "0-4", "4+",
    "resources"             / V("0+", Array(DescribeConfigsResource)),
    "include_synonyms"      / V("1+", Bool),
    "include_documentation" / V("3+", Bool),
)

DescribeConfigsSynonym = Group(
    "DescribeConfigsSynonym",
    "name"   / V("1+", Str),
    "value"  / V("1+", Str, nullable="0+"),
    "source" / V("1+", Int8),
)

DescribeConfigsResourceResult = Group(
    "DescribeConfigsResourceResult",
    "name"          / V("0+", Str),
    "value"         / V("0+", Str, nullable="0+"),
    "read_only"     / V("0+", Bool),
    "is_default"    / V("0",  Bool),
    "config_source" / V("1+", Int8, default=-1),
    "is_sensitive"  / V("0+", Bool),
    "synonyms"      / V("1+", Array(DescribeConfigsSynonym)),
    "config_type"   / V("3+", Int8),
    "documentation" / V("3+", Str, nullable="0+"),
)

DescribeConfigsResult = Group(
    "DescribeConfigsResult",
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
    "resource_type" / V("0+", Int8),
    "resource_name" / V("0+", Str),
    "configs"       / V("0+", Array(DescribeConfigsResourceResult)),
)

DescribeConfigsResponse = Api(
    ApiKey.DESCRIBE_CONFIGS, "DescribeConfigsResponse", "0-4", "4+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(DescribeConfigsResult)),
)
