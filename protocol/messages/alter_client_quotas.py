"""AlterClientQuotas (key 49): set and remove quotas of users, client ids and addresses.

* v1 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bool, Float64, Group, Int16, Int32, Str, V

# fmt: off

AlteredEntityPart = Group(
    "AlteredEntityPart",
    "entity_type" / V("0+", Str),
    "entity_name" / V("0+", Str, nullable="0+"),
)

QuotaOperation = Group(
    "QuotaOperation",
    "key"    / V("0+", Str),
    "value"  / V("0+", Float64),
    "remove" / V("0+", Bool),
)

QuotaAlteration = Group(
    "QuotaAlteration",
    "entity" / V("0+", Array(AlteredEntityPart)),
    "ops"    / V("0+", Array(QuotaOperation)),
)

AlterClientQuotasRequest = Api(
    ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotasRequest", "0-1", "1+",
    "entries"       / V("0+", Array(QuotaAlteration)),
    "validate_only" / V("0+", Bool),
)

QuotaAlterationResult = Group(
    "QuotaAlterationResult",
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
    "entity"        / V("0+", Array(AlteredEntityPart)),
)

AlterClientQuotasResponse = Api(
    ApiKey.ALTER_CLIENT_QUOTAS, "AlterClientQuotasResponse", "0-1", "1+",
    "throttle_time_ms" / V("0+", Int32),
    "entries"          / V("0+", Array(QuotaAlterationResult)),
)
