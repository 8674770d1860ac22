"""Claims of tokens, by the rules that Kafka's two validators share. Pure."""

from collections.abc import Mapping
from typing import Any

from broker.security.authentication.mechanisms.bearer import InvalidTokenError

Claims = Mapping[str, Any]


def text_of(claims: Claims, name: str) -> str:
    """Return a claim that must be a text. Raises InvalidTokenError."""
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidTokenError(f"the claim {name} is no text")
    return value.strip()


def seconds_of(claims: Claims, name: str) -> float | None:
    """Return a claim that is a moment, in seconds; None if it is missing.

    Raises InvalidTokenError.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 53:
        raise InvalidTokenError(f"the claim {name} is no moment")
    return float(value)


def expiry_of(claims: Claims) -> float:
    """Return when a token expires, in seconds. Raises InvalidTokenError."""
    expires_s = seconds_of(claims, "exp")
    if expires_s is None:
        raise InvalidTokenError("it never expires")
    return expires_s


def scope_of(claims: Claims, name: str) -> frozenset[str]:
    """Return the words of the scope, from a text or a list of texts. Raises InvalidTokenError."""
    value = claims.get(name)
    words = [value] if isinstance(value, str) else value
    if words is None:
        return frozenset()
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidTokenError(f"the claim {name} is no scope")
    return frozenset(word.strip() for word in words)
