"""SaslHandshake (key 17): choose the mechanism by which the connection authenticates.

Behaviour
* The answer names the mechanisms of the listener; one that is not among them is refused with
  UNSUPPORTED_SASL_MECHANISM, and the connection ends.
* A connection whose session has an end (KIP-368) may shake hands again. The answer is
  ILLEGAL_SASL_STATE if there is nothing to authenticate, or no more.
* `broker.security.authentication` has the rules; listeners without SASL do not use it.

Version notes
* After v0 the mechanism's messages come in frames without header, after v1 in SaslAuthenticate.
"""

from typing import Final

from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API: Final = Api(
    key=ApiKey.SASL_HANDSHAKE,
    versions=(0, 1),
    most_elements=1,
    ends_with_client=True,
    # No access is checked, because the client has no principal yet.
    make=lambda s: SaslHandshakeHandler(),
)


class SaslHandshakeHandler(CodeAlone):
    """Hands the choice to the connection's authentication."""

    response = SaslHandshakeResponse

    async def __call__(
        self, ctx: RequestContext, request: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        """The response, after a while if the choice is refused."""
        authentication = ctx.connection.authentication
        if authentication is None:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        answer = await authentication.shake_hands(ctx, request.mechanism)
        if answer.code is ErrorCode.ILLEGAL_SASL_STATE:
            return SaslHandshakeResponse(error_code=answer.code)
        return SaslHandshakeResponse(
            error_code=answer.code, mechanisms=list(authentication.offered)
        )
