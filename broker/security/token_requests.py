"""Which delegation tokens a client may create or describe (KIP-48, KIP-373).

After Kafka's `KafkaApis.allowTokenRequests` and `DelegationTokenManager.filterToken`.
"""

from typing import TYPE_CHECKING, Final

from broker.request import ConnectionInfo, RequestContext
from broker.security.access import Operation, ResourceType
from broker.security.permissions import Permissions
from broker.security.principal import Principal
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.security.delegation_tokens import DelegationToken, DelegationTokens

_ANONYMOUS: Final = "User:ANONYMOUS"


def enabled(tokens: "DelegationTokens | None") -> "DelegationTokens":
    """Return the store of the tokens. Raises KafkaError if there is none."""
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def may_ask_for_tokens(client: ConnectionInfo) -> bool:
    """Whether a connection has proved who it is, and not by a token, which may make no other."""
    if client.by_token or client.security_protocol == "PLAINTEXT":
        return False
    return client.security_protocol != "SSL" or client.principal != _ANONYMOUS


def may_create_for(ctx: RequestContext, owner: Principal, allowed: Permissions | None) -> bool:
    """Whether the client may make a token for `owner`, which may be the client itself."""
    if str(owner) == ctx.connection.principal or allowed is None:
        return True
    return allowed(ctx, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))


def may_describe(
    ctx: RequestContext,
    token: "DelegationToken",
    owners: frozenset[Principal] | None,
    allowed: Permissions | None,
) -> bool:
    """Whether one of `owners` (None: anybody) is a party of a token, and the client may see it."""
    parties = token.parties
    if owners is not None and owners.isdisjoint(parties):
        return False
    if allowed is None or Principal.of(ctx.connection.principal) in parties:
        return True
    return allowed(
        ctx, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
    ) or allowed(ctx, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
