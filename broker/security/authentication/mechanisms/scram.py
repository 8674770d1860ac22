"""SCRAM-SHA-256 and SCRAM-SHA-512, with credentials of users or of delegation tokens.

After Kafka's `ScramSaslServer`. The broker's part of a proof is two HMACs and a hash, some
microseconds; the client does SCRAM's costly part.

An unknown user gets the same answers as a wrong password (S-SEC-3). Kafka refuses an unknown user
at once; here it gets a salt, which is always the same for that name and of the form of real ones,
and is refused after its proof. The work is the same, too: the salt that stands in is computed for
known users as well, and so is the check of a proof for unknown ones.

An exchange has its own nonce, so a message that was recorded proves nothing in another one; and
the last message must be bound to the header of the first, so nobody in between can change it.
"""

import hmac
from collections.abc import Callable
from typing import Protocol

from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from broker.security.scram_credentials import ScramCredentials
from protocol.sasl import MalformedMessage
from protocol.sasl.scram import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    proof_is_right,
    random_text,
    server_signature,
)
from protocol.sasl.scram_messages import (
    ClientFirst,
    ServerFirst,
    auth_message,
    binding_of,
    build_server_final,
    build_server_first,
    parse_client_final,
    parse_client_first,
)
from storage.waits import Work

_OTHER_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class TokenCredentials(Protocol):
    """Credentials of delegation tokens (`broker.security.delegation_tokens`)."""

    def authenticating(
        self, mechanism: ScramMechanism, token_id: str
    ) -> Work[tuple[ScramCredential, AuthenticatedUser] | None]:
        """Return a token's credential and owner; None if there is no such token, or no more."""
        ...


class ScramServer:
    """One of the two mechanisms, as one listener offers it."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        max_reauth_ms: int,
        users: ScramCredentials,
        tokens: TokenCredentials | None,
        random_bits: Callable[[int], int],
    ) -> None:
        self.mechanism = mechanism
        self.name = mechanism.value
        self.max_reauth_ms = max_reauth_ms
        self.users = users
        self.tokens = tokens
        self.random_bits = random_bits

    def begin(self) -> Exchange:
        """See `Mechanism`."""
        return _ScramExchange(self)


class _ScramExchange:
    """Two messages of the client: the first names it, the second has its proof."""

    def __init__(self, server: ScramServer) -> None:
        self._server = server
        self._first: tuple[ClientFirst, ServerFirst] | None = None
        self._credential: ScramCredential | None = None
        self._identity: AuthenticatedUser | None = None
        """The identity that a right proof proves; None if no proof can be right."""

    async def evaluate(self, message: bytes) -> Progress:
        """See `Exchange`."""
        try:
            if self._first is None:
                return Progress(await self._answer_first(parse_client_first(message)))
            return self._answer_final(message, *self._first)
        except MalformedMessage as error:
            raise RefusedError(why=str(error)) from None

    async def _answer_first(self, first: ClientFirst) -> bytes:
        server = self._server
        mechanism, user = server.mechanism, first.user
        if first.authorization_id not in ("", user):
            raise RefusedError(_OTHER_ID)
        known: ScramCredential | None
        if first.by_token:
            tokens = server.tokens
            found = None if tokens is None else await tokens.authenticating(mechanism, user)
            known, self._identity = found or (None, None)
        else:
            known = await server.users.find(mechanism, user)
            self._identity = None if known is None else AuthenticatedUser(user)
        # For every user, because it takes time.
        stand_in = server.users.stand_in(mechanism, user, by_token=first.by_token)
        credential = stand_in if known is None else known
        if credential.iterations < MIN_ITERATIONS:
            raise RefusedError(
                why=f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS}"
            )
        answer = build_server_first(
            first, random_text(server.random_bits), credential.salt, credential.iterations
        )
        self._first, self._credential = (first, answer), credential
        return answer.text.encode()

    def _answer_final(self, message: bytes, first: ClientFirst, answer: ServerFirst) -> Progress:
        final = parse_client_final(message)
        mechanism, credential = self._server.mechanism, self._credential
        assert credential is not None
        if not hmac.compare_digest(final.nonce.encode(), answer.nonce.encode()):
            raise RefusedError(why="Invalid client nonce in the final client message.")
        if final.binding != binding_of(first):
            raise RefusedError(why="Invalid channel binding in the final client message.")
        signed = auth_message(first, answer, final.unproved)
        is_right = proof_is_right(mechanism, credential, signed, final.proof)
        signature = server_signature(mechanism, credential.server_key, signed)
        if not is_right or self._identity is None:
            raise RefusedError(why="Invalid client credentials")
        return Progress(build_server_final(signature), self._identity)
