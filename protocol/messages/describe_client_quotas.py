"""DescribeClientQuotas (key 48): which quotas are set for users, client ids and addresses.

* v1 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Float64, Group, Int8, Int16, Int32, Str, V

# fmt: off

QuotaFilterComponent = Group(
    "QuotaFilterComponent",
    "entity_type" / V("0+", Str),
    "match_type"  / V("0+", Int8),
    "match"       / V("0+", Str, nullable="0+"),
)

DescribeClientQuotasRequest = Api(
    ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotasRequest", "0-1", "1+",
    "components" / V("0+", Array(QuotaFilterComponent)),
    "strict"     / V("0+", Bool),
)

QuotaEntityPart = Group(
    "QuotaEntityPart",
    "entity_type" / V("0+", Str),
    "entity_name" / V("0+", Str, nullable="0+"),
)

QuotaValue = Group(
    "QuotaValue",
    "key"   / V("0+", Str),
    "value" / V("0+", Float64),
)

DescribedQuotas = Group(
    "DescribedQuotas",
    "entity" / V("0+", Array(QuotaEntityPart)),
    "values" / V("0+", Array(QuotaValue)),
)

DescribeClientQuotasResponse = Api(
    ApiKey.DESCRIBE_CLIENT_QUOTAS, "DescribeClientQuotasResponse", "0-1", "1+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "entries"          / V("0+", Array(DescribedQuotas), nullable="0+"),
)
