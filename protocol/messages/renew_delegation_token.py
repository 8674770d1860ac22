"""RenewDelegationToken (key 39): have a token expire later.

* v2 is flexible. Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Bytes, Int16, Int32, Int64, V

# fmt: off

RenewDelegationTokenRequest = Api(
    ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationTokenRequest", "1-2", "2+",
    "hmac"            / V("1+", Bytes),
    "renew_period_ms" / V("1+", Int64),
)

RenewDelegationTokenResponse = Api(
    ApiKey.RENEW_DELEGATION_TOKEN, "RenewDelegationTokenResponse", "1-2", "2+",
    "error_code"          / V("1+", Int16),
    "expiry_timestamp_ms" / V("1+", Int64),
    "throttle_time_ms"    / V("1+", Int32),
)
