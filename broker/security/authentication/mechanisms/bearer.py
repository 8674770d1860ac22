"""OAUTHBEARER: a bearer token, whose claims say who the client is (RFC 7628, KIP-255, KIP-768).

After Kafka's `OAuthBearerSaslServer`. A `TokenValidator` validates tokens: `signed_tokens` or
`unsecured_tokens`. Validating and parsing run in a thread, because a token may be long.

A token that is not accepted is answered with a status; the reason is in the log only, at once,
because a client may leave without confirming the status.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from broker.fairness import Lane
from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from config.sasl_settings import OAUTHBEARER
from config.terminal import shown_line
from protocol.sasl import MalformedMessage
from protocol.sasl.oauthbearer import CONFIRMED, BearerMessage, build_refusal, parse_bearer
from storage.clock import Clock

_SHOWN: Final = 200
"""Characters of a reason that are logged. It may name a key as the token does."""


class ValidToken(NamedTuple):
    """The claims of a valid token."""

    user: str
    expires_ms: int


class InvalidTokenError(Exception):
    """A token is not accepted. The text is for the log and has nothing secret of the token."""

    def __init__(
        self, why: str, *, key_id: str | None = None, missing_scope: str | None = None
    ) -> None:
        super().__init__(why)
        self.key_id = key_id
        """The id of a key that is not known; None if that was not the reason."""
        self.missing_scope = missing_scope


Validate = Callable[[str, int], ValidToken]
"""(token, milliseconds of the wall clock): validates on values of its own, in a thread. Raises
InvalidTokenError."""


class TokenValidator(Protocol):
    """Validates the tokens of one listener."""

    def ready(self) -> Validate:
        """Return the validation with the present keys."""
        ...

    def note_missing(self, key_id: str) -> None:
        """A token names a key that is not known."""
        ...


class BearerMechanism:
    """OAUTHBEARER, as one listener offers it."""

    name = OAUTHBEARER

    def __init__(
        self, validator: TokenValidator, max_reauth_ms: int, lane: Lane, clock: Clock
    ) -> None:
        self.max_reauth_ms = max_reauth_ms
        self.validator = validator
        self.lane = lane
        self.clock = clock

    def begin(self) -> Exchange:
        """See `Mechanism`."""
        return _BearerExchange(self)


class _BearerExchange:
    def __init__(self, mechanism: BearerMechanism) -> None:
        self._mechanism = mechanism
        self._refusal = ""

    async def evaluate(self, message: bytes) -> Progress:
        """See `Exchange`: the first message proves the identity, or is answered with a status."""
        if self._refusal and message == CONFIRMED:
            raise RefusedError(self._refusal, is_logged=True)
        mechanism, self._refusal = self._mechanism, ""
        validator = mechanism.validator
        now_ms = mechanism.clock.wall_ms()
        outcome = await mechanism.lane.call(_outcome_of, validator.ready(), message, now_ms)
        if isinstance(outcome, MalformedMessage):
            raise RefusedError(why=str(outcome))
        if isinstance(outcome, InvalidTokenError):
            return self._refused(outcome)
        bearer, token = outcome
        if bearer.authorization_id not in ("", token.user):
            raise RefusedError(
                f"Authentication failed: Client requested an authorization id"
                f" ({bearer.authorization_id}) that is different from the token's principal name"
                f" ({token.user})"
            )
        return Progress(b"", AuthenticatedUser(token.user, expires_ms=token.expires_ms))

    def _refused(self, error: InvalidTokenError) -> Progress:
        if error.key_id is not None:
            self._mechanism.validator.note_missing(error.key_id)
        if error.missing_scope is None:
            answer = build_refusal("invalid_token")
        else:
            answer = build_refusal("insufficient_scope", error.missing_scope)
        self._refusal = answer.decode()
        reason = shown_line(str(error)[:_SHOWN])
        return Progress(answer, refusal=f"{self._refusal}: {reason}")


def _outcome_of(
    validate: Validate, message: bytes, now_ms: int
) -> tuple[BearerMessage, ValidToken] | MalformedMessage | InvalidTokenError:
    """Judge the client's message. Refusals are values, because this runs in a thread."""
    try:
        bearer = parse_bearer(message)
        return bearer, validate(bearer.token, now_ms)
    except (MalformedMessage, InvalidTokenError) as refusal:
        return refusal.with_traceback(None)
