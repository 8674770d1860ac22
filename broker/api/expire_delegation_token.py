"""ExpireDelegationToken (key 40): have a token expire earlier, or at once (KIP-48).

Behaviour: `KafkaApis.handleExpireTokenRequest` and `DelegationTokenControlManager` of Kafka 4
* Only a connection that has proved who it is may ask, and not by a token: else
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
* Owner and renewers may: of others it is DELEGATION_TOKEN_OWNER_MISMATCH.
* A negative period removes the token, expired or not; it authenticates nobody any more. Connections
  that it has authenticated stay until their session ends.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from broker.security.principal import Principal
from broker.security.token_requests import enabled, may_ask_for_tokens
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from broker.security.delegation_tokens import DelegationTokens

API: Final = Api(
    key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    versions=(1, 2),
    most_elements=1,
    # The token's owner and renewers may; no ACL is checked.
    make=lambda s: ExpireDelegationTokenHandler(s.delegation_tokens),
)


class ExpireDelegationTokenHandler(CodeAlone):
    """Has the token expired."""

    response = ExpireDelegationTokenResponse

    def __init__(self, tokens: "DelegationTokens | None") -> None:
        self._tokens = tokens

    async def __call__(
        self, ctx: RequestContext, request: ExpireDelegationTokenRequest
    ) -> ExpireDelegationTokenResponse:
        """The response, when the change is durable."""
        if not may_ask_for_tokens(ctx.connection):
            return ExpireDelegationTokenResponse(
                error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
            )
        client, secret = Principal.of(ctx.connection.principal), bytes(request.hmac)
        expires_ms = await enabled(self._tokens).expire(
            client, secret, request.expiry_time_period_ms
        )
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
