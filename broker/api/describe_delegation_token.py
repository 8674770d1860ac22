"""DescribeDelegationToken (key 41): describe the tokens of some owners, or all (KIP-48).

Behaviour: `KafkaApis.handleDescribeTokensRequest`
* Only a connection that has proved who it is may ask, and not by a token: else
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
* Owners, renewers and requesters (KIP-373) see their tokens, others those that ACLs let them see. A
  listed owner stands for all three. An empty list of owners asks for none.
"""

from typing import TYPE_CHECKING, Final

from broker.api_facts import Api, CodeAlone
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.security.principal import Principal
from broker.security.token_requests import enabled, may_ask_for_tokens, may_describe
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from storage.waits import PAUSE

if TYPE_CHECKING:
    from broker.security.delegation_tokens import DelegationToken, DelegationTokens

API: Final = Api(
    key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
    versions=(1, 3),
    most_elements=1_000,
    ends_with_client=True,
    # KafkaApis.handleDescribeTokensRequest, about tokens of others
    asks=(
        Question(ResourceType.DELEGATION_TOKEN, Operation.DESCRIBE),
        Question(ResourceType.USER, Operation.DESCRIBE_TOKENS),
    ),
    make=lambda s: DescribeDelegationTokenHandler(s.delegation_tokens, s.allowed),
)


class DescribeDelegationTokenHandler(CodeAlone):
    """Filters the tokens by who asks for whose."""

    response = DescribeDelegationTokenResponse

    def __init__(self, tokens: "DelegationTokens | None", allowed: Permissions | None) -> None:
        self._tokens = tokens
        self._allowed = allowed

    async def __call__(
        self, ctx: RequestContext, request: DescribeDelegationTokenRequest
    ) -> DescribeDelegationTokenResponse:
        """The response, in turns if there are many tokens. Raises KafkaError."""
        if not may_ask_for_tokens(ctx.connection):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        owners = None
        if request.owners is not None:
            owners = frozenset(
                Principal(one.principal_type, one.principal_name) for one in request.owners
            )
        tokens = enabled(self._tokens)
        ctx.large = True
        described = []
        for token in await tokens.all():
            if may_describe(ctx, token, owners, self._allowed):
                described.append(_described(token, tokens.hmac(token)))
            await PAUSE
        return DescribeDelegationTokenResponse(tokens=described)


def _described(token: "DelegationToken", secret: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            DescribedDelegationTokenRenewer(
                principal_type=renewer.kind, principal_name=renewer.name
            )
            for renewer in token.renewers
        ],
    )
