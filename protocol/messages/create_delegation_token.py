"""CreateDelegationToken (key 38): have a token made that authenticates as its owner (KIP-48).

* v2 is flexible, v3 adds the owner, who may be another than the requester. Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bytes, Group, Int16, Int32, Int64, Str, V

# fmt: off

CreatableRenewer = Group(
    "CreatableRenewer",
    "principal_type" / V("1+", Str),
    "principal_name" / V("1+", Str),
)

CreateDelegationTokenRequest = Api(
    ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationTokenRequest", "1-3", "2+",
    "owner_principal_type" / V("3+", Str, nullable="3+"),
    "owner_principal_name" / V("3+", Str, nullable="3+"),
    "renewers"             / V("1+", Array(CreatableRenewer)),
    "max_lifetime_ms"      / V("1+", Int64),
)

CreateDelegationTokenResponse = Api(
    ApiKey.CREATE_DELEGATION_TOKEN, "CreateDelegationTokenResponse", "1-3", "2+",
    "error_code"                     / V("1+", Int16),
    "principal_type"                 / V("1+", Str),
    "principal_name"                 / V("1+", Str),
    "token_requester_principal_type" / V("3+", Str),
    "token_requester_principal_name" / V("3+", Str),
    "issue_timestamp_ms"             / V("1+", Int64),
    "expiry_timestamp_ms"            / V("1+", Int64),
    "max_timestamp_ms"               / V("1+", Int64),
    "token_id"                       / V("1+", Str),
    "hmac"                           / V("1+", Bytes),
    "throttle_time_ms"               / V("1+", Int32),
)
