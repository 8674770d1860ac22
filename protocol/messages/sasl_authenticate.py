"""SaslAuthenticate (key 36): the messages of the chosen mechanism.

* v1 adds the lifetime of the session (KIP-368): who sends it can authenticate again.
* v2 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Bytes, Int16, Int64, Str, V

# fmt: off

SaslAuthenticateRequest = Api(
    ApiKey.SASL_AUTHENTICATE, "SaslAuthenticateRequest", "0-2", "2+",
    "auth_bytes" / V("0+", Bytes),
)

SaslAuthenticateResponse = Api(
    ApiKey.SASL_AUTHENTICATE, "SaslAuthenticateResponse", "0-2", "2+",
    "error_code"          / V("0+", Int16),
    "error_message"       / V("0+", Str, nullable="0+"),
    "auth_bytes"          / V("0+", Bytes),
    "session_lifetime_ms" / V("1+", Int64),
)
