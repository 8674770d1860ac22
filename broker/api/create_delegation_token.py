"""CreateDelegationToken (key 38): have a token made that authenticates as its owner (KIP-48).

Behaviour: `KafkaApis.handleCreateTokenRequest` and `DelegationTokenControlManager` of Kafka 4
* Only a connection that has proved who it is may ask, and not by a token: else
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
* Renewers are users: else INVALID_PRINCIPAL_TYPE. Without `delegation.token.secret.key`:
  DELEGATION_TOKEN_AUTH_DISABLED.

Version notes
* v3+: a token may be for another owner (KIP-373), if that is allowed.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.security.principal import USER, Principal
from broker.security.token_requests import enabled, may_ask_for_tokens, may_create_for
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from broker.security.delegation_tokens import DelegationToken, DelegationTokens

API: Final = Api(
    key=ApiKey.CREATE_DELEGATION_TOKEN,
    versions=(1, 3),
    most_elements=1_000,
    # KafkaApis.handleCreateTokenRequest, for another owner
    asks=(Question(ResourceType.USER, Operation.CREATE_TOKENS),),
    make=lambda s: CreateDelegationTokenHandler(s.delegation_tokens, s.allowed),
)

_NO_MOMENT: Final = -1


class CreateDelegationTokenHandler:
    """Checks who asks for whom, and has the token made."""

    def __init__(self, tokens: "DelegationTokens | None", allowed: Permissions | None) -> None:
        self._tokens = tokens
        self._allowed = allowed

    async def __call__(
        self, ctx: RequestContext, request: CreateDelegationTokenRequest
    ) -> CreateDelegationTokenResponse:
        """The response, when the token is durable. Raises KafkaError."""
        if not may_ask_for_tokens(ctx.connection):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        owner, requester = _parties(ctx, request)
        if not may_create_for(ctx, owner, self._allowed):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        renewers = [
            Principal(renewer.principal_type, renewer.principal_name)
            for renewer in request.renewers
        ]
        if any(renewer.kind != USER for renewer in renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        tokens = enabled(self._tokens)
        token = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
        return _response(owner, requester, token, tokens.hmac(token))

    def error_response(
        self, ctx: RequestContext, request: CreateDelegationTokenRequest, code: ErrorCode
    ) -> CreateDelegationTokenResponse:
        """The code, for whom it was, and no token."""
        owner, requester = _parties(ctx, request)
        response = _response(owner, requester, None, b"")
        response.error_code = code
        return response


def _parties(
    ctx: RequestContext, request: CreateDelegationTokenRequest
) -> tuple[Principal, Principal]:
    """The owner, and who asks."""
    requester = Principal.of(ctx.connection.principal)
    if not request.owner_principal_name:
        return requester, requester
    return Principal(request.owner_principal_type or "", request.owner_principal_name), requester


def _response(
    owner: Principal, requester: Principal, token: "DelegationToken | None", secret: bytes
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=_NO_MOMENT if token is None else token.issued_ms,
        expiry_timestamp_ms=_NO_MOMENT if token is None else token.expires_ms,
        max_timestamp_ms=_NO_MOMENT if token is None else token.max_ms,
        token_id="" if token is None else token.token_id,
        hmac=secret,
    )
