"""RenewDelegationToken (key 39): have a token expire later (KIP-48).

Behaviour: `KafkaApis.handleRenewTokenRequest` and `DelegationTokenControlManager` of Kafka 4
* Only a connection that has proved who it is may ask, and not by a token: else
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
* Owner and renewers may renew a token, up to the end of its life: of others it is
  DELEGATION_TOKEN_OWNER_MISMATCH, of an expired one DELEGATION_TOKEN_EXPIRED.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from broker.security.principal import Principal
from broker.security.token_requests import enabled, may_ask_for_tokens
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from broker.security.delegation_tokens import DelegationTokens

API: Final = Api(
    key=ApiKey.RENEW_DELEGATION_TOKEN,
    versions=(1, 2),
    most_elements=1,
    # The token's owner and renewers may; no ACL is checked.
    make=lambda s: RenewDelegationTokenHandler(s.delegation_tokens),
)


class RenewDelegationTokenHandler(CodeAlone):
    """Has the token renewed."""

    response = RenewDelegationTokenResponse

    def __init__(self, tokens: "DelegationTokens | None") -> None:
        self._tokens = tokens

    async def __call__(
        self, ctx: RequestContext, request: RenewDelegationTokenRequest
    ) -> RenewDelegationTokenResponse:
        """The response, when the change is durable."""
        if not may_ask_for_tokens(ctx.connection):
            return RenewDelegationTokenResponse(
                error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
            )
        client, secret = Principal.of(ctx.connection.principal), bytes(request.hmac)
        expires_ms = await enabled(self._tokens).renew(client, secret, request.renew_period_ms)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
