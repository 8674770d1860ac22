"""Bearer tokens and the keys of an issuer, made by PyJWT."""

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from config.sasl_settings import SecuredTokens

CLAIMS = {"sub": "alice", "aud": "kafka", "iss": "https://issuer", "iat": 1000, "exp": 2000}
NOW_MS = 1_500_000


@cache
def private_key(name: str) -> Any:
    """A private key; the first word of its name is its kind."""
    kind = name.split()[0]
    if kind == "RSA":
        return rsa.generate_private_key(65537, 2048)
    if kind == "EC":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def jwk(name: str, **fields: Any) -> dict[str, Any]:
    """The public key as an entry of a JWKS; `kid` is the name."""
    algorithms = {
        "RSA": jwt.algorithms.RSAAlgorithm,
        "EC": jwt.algorithms.ECAlgorithm,
        "Ed25519": jwt.algorithms.OKPAlgorithm,
    }
    public = private_key(name).public_key()
    return {**json.loads(algorithms[name.split()[0]].to_jwk(public)), "kid": name, **fields}


def jwks(*keys: dict[str, Any]) -> bytes:
    """The document of an issuer."""
    return json.dumps({"keys": keys}).encode()


def signed(
    name: str = "RSA 1",
    algorithm: str = "RS256",
    *,
    kid: str | None = "",
    without: tuple[str, ...] = (),
    **claims: Any,
) -> str:
    """A token that was signed with a key; `kid` None leaves out which."""
    payload = {key: value for key, value in {**CLAIMS, **claims}.items() if key not in without}
    headers = None if kid is None else {"kid": kid or name}
    return jwt.encode(payload, private_key(name), algorithm=algorithm, headers=headers)


def unsigned(header: dict[str, Any] | None = None, **claims: Any) -> str:
    """A token that nobody has signed."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part(header or {'alg': 'none'})}.{part({**CLAIMS, **claims})}."


def secured(**changes: Any) -> SecuredTokens:
    """Settings for tokens that an issuer has signed: for anybody, of any issuer."""
    fields: dict[str, Any] = {
        "jwks_url": "file:/keys",
        "audiences": (),
        "issuer": None,
        "clock_skew_s": 0,
        "scope_claim": "scope",
        "user_claim": "sub",
        "refresh_ms": 60_000,
        "backoff_ms": 100,
        "most_backoff_ms": 1000,
    }
    return SecuredTokens(**{**fields, **changes})
