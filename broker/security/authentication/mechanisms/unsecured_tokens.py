"""Tokens that nobody has signed: for trials, if the configuration names them.

Kafka's `OAuthBearerUnsecuredValidatorCallbackHandler`, which is its default. Anybody can make such
a token and be anybody, so here it must be named.
"""

import base64
import binascii
import json
from functools import partial
from typing import Any

from broker.security.authentication.mechanisms.bearer import (
    InvalidTokenError,
    Validate,
    ValidToken,
)
from broker.security.authentication.mechanisms.claims import (
    expiry_of,
    scope_of,
    seconds_of,
    text_of,
)
from config.sasl_settings import UnsecuredTokens


class UnsignedTokens:
    """Validates the tokens of one listener."""

    def __init__(self, settings: UnsecuredTokens) -> None:
        self._settings = settings

    def ready(self) -> Validate:
        """See `TokenValidator`."""
        return partial(validate, self._settings)

    def note_missing(self, key_id: str) -> None:
        """See `TokenValidator`: there are no keys."""


def validate(settings: UnsecuredTokens, token: str, now_ms: int) -> ValidToken:
    """Validate a token. Raises InvalidTokenError."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise InvalidTokenError("it is no unsecured token: two parts and a dot")
    header, claims = (_parsed(part) for part in parts[:2])
    if header.get("alg") != "none":
        raise InvalidTokenError("Unsecured JWS must have 'none' for an algorithm")
    user = text_of(claims, settings.user_claim)
    expires_s, issued_s = expiry_of(claims), seconds_of(claims, "iat")
    skew_ms = settings.clock_skew_ms
    if issued_s is not None and issued_s * 1000 > now_ms + skew_ms:
        raise InvalidTokenError("it was issued later than now")
    if now_ms - skew_ms >= expires_s * 1000:
        raise InvalidTokenError("it has expired")
    if issued_s is not None and expires_s <= issued_s:
        raise InvalidTokenError("it expires before it was issued")
    scope = scope_of(claims, settings.scope_claim)
    if not scope.issuperset(settings.required_scope):
        required = f"[{', '.join(settings.required_scope)}]"
        raise InvalidTokenError("its scope does not suffice", missing_scope=required)
    return ValidToken(user, round(expires_s * 1000))


def _parsed(part: str) -> dict[str, Any]:
    try:
        padded = part + "=" * (-len(part) % 4)
        value = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidTokenError("a part of it is no JSON object")
    return value
