"""Who may ask about delegation tokens, and about which (KIP-48, KIP-373).

Kafka's `KafkaApis.allowTokenRequests` and `DelegationTokenManager.filterToken`.
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
    """Return what keeps the tokens. Raises KafkaError if there is nothing that does."""
    if tokens is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def may_ask_for_tokens(client: ConnectionInfo) -> bool:
    """Whether a connection has proved who it is, and not by a token: a token begets no other."""
    if client.by_token or client.security_protocol == "PLAINTEXT":
        return False
    return client.security_protocol != "SSL" or client.principal != _ANONYMOUS


def may_create_for(ctx: RequestContext, owner: Principal, allowed: Permissions | None) -> bool:
    """Whether the client may make a token for `owner`: itself, or whom it is allowed."""
    if str(owner) == ctx.connection.principal or allowed is None:
        return True
    return allowed(ctx, Operation.CREATE_TOKENS, ResourceType.USER, str(owner))


def may_describe(
    ctx: RequestContext,
    token: "DelegationToken",
    owners: frozenset[Principal] | None,
    allowed: Permissions | None,
) -> bool:
    """Whether a token is one of those that are asked for (None: all), and the client may see it."""
    if owners is not None and owners.isdisjoint((token.owner, *token.renewers)):
        return False
    if allowed is None or token.belongs_to(Principal.of(ctx.connection.principal)):
        return True
    return allowed(
        ctx, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
    ) or allowed(ctx, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
