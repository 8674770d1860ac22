"""Tokens that an issuer has signed, verified by its keys (Kafka's `BrokerJwtValidator`).

PyJWT parses tokens and verifies signatures, by algorithms of public keys only: neither `none` nor
an HMAC, for which a public key would be the secret. Times are held against the broker's clock.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import jwt

from broker.security.authentication.mechanisms.bearer import (
    InvalidTokenError,
    Validate,
    ValidToken,
)
from broker.security.authentication.mechanisms.claims import (
    Claims,
    expiry_of,
    scope_of,
    seconds_of,
    text_of,
)
from broker.security.authentication.mechanisms.issuer_keys import IssuerKey, IssuerKeys
from config.sasl_settings import SecuredTokens

ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By type of key."""
_MOST_TRIED: Final = 4
"""Keys that are tried for a token that names none."""


class SignedTokens:
    """Validates the tokens of one listener."""

    def __init__(self, settings: SecuredTokens, keys: IssuerKeys) -> None:
        self._settings = settings
        self._keys = keys

    def ready(self) -> Validate:
        """See `TokenValidator`."""
        return partial(validate, self._settings, self._keys.keys)

    def note_missing(self, key_id: str) -> None:
        """See `TokenValidator`."""
        self._keys.ask_for(key_id)


def validate(
    settings: SecuredTokens, keys: Sequence[IssuerKey], token: str, now_ms: int
) -> ValidToken:
    """Validate a token. Raises InvalidTokenError."""
    claims = _verified(settings, keys, token)
    now_s, skew_s = now_ms / 1000, settings.clock_skew_s
    expires_s = expiry_of(claims)
    seconds_of(claims, "iat")
    if now_s - skew_s >= expires_s:
        raise InvalidTokenError("it has expired")
    begins_s = seconds_of(claims, "nbf")
    if begins_s is not None and now_s + skew_s < begins_s:
        raise InvalidTokenError("it is not valid yet")
    scope_of(claims, settings.scope_claim)
    return ValidToken(text_of(claims, settings.user_claim), round(expires_s * 1000))


def _verified(settings: SecuredTokens, keys: Sequence[IssuerKey], token: str) -> Claims:
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.InvalidTokenError, RecursionError) as error:
        raise InvalidTokenError(f"it is no token: {error}") from None
    algorithm, key_id = str(header.get("alg")), header.get("kid")
    fitting = [key for key in keys if _fits(key, algorithm, key_id)]
    wrong = f"no key of the issuer fits it (alg={algorithm}, kid={key_id})"
    for key in fitting[:_MOST_TRIED]:
        try:
            claims: Claims = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=settings.audiences or None,
                issuer=settings.issuer,
                options=_options(settings),
            )
        except (jwt.InvalidTokenError, jwt.InvalidKeyError, RecursionError) as error:
            wrong = str(error)
        else:
            return claims
    raise InvalidTokenError(wrong, key_id=None if fitting else key_id or "")


def _options(settings: SecuredTokens) -> Any:
    return {
        "require": ["exp", "iat"],
        "verify_exp": False,  # held against the broker's clock
        "verify_nbf": False,
        "verify_iat": False,
        "verify_aud": bool(settings.audiences),
        "verify_iss": settings.issuer is not None,
    }


def _fits(key: IssuerKey, algorithm: str, key_id: str | None) -> bool:
    if key_id is not None and key.key_id != key_id:
        return False
    if key.algorithm is not None and key.algorithm != algorithm:
        return False
    return algorithm in ALGORITHMS.get(key.kind, ())
