"""ExpireDelegationToken (key 40): have a token expire earlier, or at once.

* v2 is flexible. Kafka 4 dropped v0.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Bytes, Int16, Int32, Int64, V

# fmt: off

ExpireDelegationTokenRequest = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationTokenRequest", "1-2", "2+",
    "hmac"                  / V("1+", Bytes),
    "expiry_time_period_ms" / V("1+", Int64),
)

ExpireDelegationTokenResponse = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN, "ExpireDelegationTokenResponse", "1-2", "2+",
    "error_code"          / V("1+", Int16),
    "expiry_timestamp_ms" / V("1+", Int64),
    "throttle_time_ms"    / V("1+", Int32),
)
