"""SaslHandshake (key 17): choose the mechanism by which a connection authenticates.

Never flexible: clients up to 2.4 negotiate its version wrongly (KAFKA-9577).

* After v0 the bytes of the mechanism follow in frames without header; after v1 in SaslAuthenticate.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Int16, Str, V

# fmt: off

SaslHandshakeRequest = Api(
    ApiKey.SASL_HANDSHAKE, "SaslHandshakeRequest", "0-1", "none",
    "mechanism" / V("0+", Str),
)

SaslHandshakeResponse = Api(
    ApiKey.SASL_HANDSHAKE, "SaslHandshakeResponse", "0-1", "none",
    "error_code" / V("0+", Int16),
    "mechanisms" / V("0+", Array(Str)),
)
