"""DescribeDelegationToken (key 41): describe the tokens of some owners, or all.

* v2 is flexible, v3 adds who requested a token. Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bytes, Group, Int16, Int32, Int64, Str, V

# fmt: off

DescribeDelegationTokenOwner = Group(
    "DescribeDelegationTokenOwner",
    "principal_type" / V("1+", Str),
    "principal_name" / V("1+", Str),
)

DescribeDelegationTokenRequest = Api(
    ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationTokenRequest", "1-3", "2+",
    "owners" / V("1+", Array(DescribeDelegationTokenOwner), nullable="1+"),
)

DescribedDelegationTokenRenewer = Group(
    "DescribedDelegationTokenRenewer",
    "principal_type" / V("1+", Str),
    "principal_name" / V("1+", Str),
)

DescribedDelegationToken = Group(
    "DescribedDelegationToken",
    "principal_type"                 / V("1+", Str),
    "principal_name"                 / V("1+", Str),
    "token_requester_principal_type" / V("3+", Str),
    "token_requester_principal_name" / V("3+", Str),
    "issue_timestamp"                / V("1+", Int64),
    "expiry_timestamp"               / V("1+", Int64),
    "max_timestamp"                  / V("1+", Int64),
    "token_id"                       / V("1+", Str),
    "hmac"                           / V("1+", Bytes),
    "renewers"                       / V("1+", Array(DescribedDelegationTokenRenewer)),
)

DescribeDelegationTokenResponse = Api(
    ApiKey.DESCRIBE_DELEGATION_TOKEN, "DescribeDelegationTokenResponse", "1-3", "2+",
    "error_code"       / V("1+", Int16),
    "tokens"           / V("1+", Array(DescribedDelegationToken)),
    "throttle_time_ms" / V("1+", Int32),
)
