"""SaslAuthenticate (key 36): the next message of the mechanism that SaslHandshake has chosen.

Behaviour
* `broker.security.authentication` has the rules. After a refusal, which takes a while, the
  connection ends.
* The answer is ILLEGAL_SASL_STATE if there is nothing to authenticate, or no more.

Version notes
* v1+ has the lifetime of the session, because a client that sends v1 can authenticate again
  (KIP-368).
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

API: Final = Api(
    key=ApiKey.SASL_AUTHENTICATE,
    versions=(0, 2),
    most_elements=1,
    ends_with_client=True,
    # No access is checked, because the client has no principal yet.
    make=lambda s: SaslAuthenticateHandler(),
)


class SaslAuthenticateHandler:
    """Hands the message to the connection's authentication."""

    async def __call__(
        self, ctx: RequestContext, request: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        """The response; it may wait for a thread, and after a refusal for a while."""
        authentication = ctx.connection.authentication
        if authentication is None:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message="SaslAuthenticate request received after successful authentication",
            )
        answer = await authentication.authenticate(ctx, bytes(request.auth_bytes))
        return SaslAuthenticateResponse(
            error_code=answer.code,
            error_message=answer.text,
            auth_bytes=answer.message,
            session_lifetime_ms=answer.lifetime_ms,
        )

    def error_response(
        self, ctx: RequestContext, request: SaslAuthenticateRequest, code: ErrorCode
    ) -> SaslAuthenticateResponse:
        """The code."""
        return SaslAuthenticateResponse(error_code=code, error_message=code.text)
