import base64
import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import pytest

from broker.security.authentication.mechanisms.bearer import InvalidTokenError, ValidToken
from broker.security.authentication.mechanisms.issuer_keys import parse_keys
from broker.security.authentication.mechanisms.signed_tokens import validate
from tests.support.tokens import NOW_MS, jwk, jwks, secured, signed, unsigned

SETTINGS = secured(audiences=("other", "kafka"), issuer="https://issuer", clock_skew_s=30)
KEYS = parse_keys(jwks(jwk("RSA 1"), jwk("EC 1"), jwk("Ed25519 1"), jwk("RSA 2", alg="PS256")))


def check(token: str, *, now_ms: int = NOW_MS, **changes: Any) -> ValidToken:
    return validate(replace(SETTINGS, **changes), KEYS, token, now_ms)


def refused(token: str, **options: Any) -> InvalidTokenError:
    with pytest.raises(InvalidTokenError) as caught:
        check(token, **options)
    return caught.value


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [("RSA 1", "RS256"), ("RSA 1", "PS512"), ("EC 1", "ES256"), ("Ed25519 1", "EdDSA")],
)
def test_a_token_that_the_issuer_has_signed_is_valid(key: str, algorithm: str) -> None:
    assert check(signed(key, algorithm)) == ValidToken("alice", 2_000_000)


def test_the_key_need_not_be_named() -> None:
    assert check(signed("RSA 1", kid=None)).user == "alice"
    assert refused(signed("RSA 3", kid=None)).key_id is None


def test_s_sec_4_a_token_without_signature_is_refused() -> None:
    refused(unsigned())
    refused(unsigned({"alg": "none", "kid": "RSA 1"}))
    refused(unsigned({"alg": "None", "kid": "RSA 1"}))
    header, claims, _ = signed().split(".")
    refused(f"{header}.{claims}.")


def test_s_sec_4_a_public_key_is_no_secret_of_an_hmac() -> None:
    def part(value: Any) -> bytes:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    public = json.dumps(jwk("RSA 1")).encode()
    content = part({"alg": "HS256", "kid": "RSA 1"}) + b"." + part({"sub": "alice", "exp": 2000})
    token = content + b"." + part(hmac.new(public, content, hashlib.sha256).digest())
    assert "fits" in str(refused(token.decode()))


def test_a_key_is_for_its_algorithm_only() -> None:
    assert check(signed("RSA 2", "PS256")).user == "alice"
    assert refused(signed("RSA 2", "RS256")).key_id == "RSA 2"


def test_a_changed_token_is_refused() -> None:
    header, claims, signature = signed().split(".")
    other = signed(sub="bob").split(".")[1]
    refused(f"{header}.{other}.{signature}")
    refused(f"{header}.{claims}.{signature[:-6]}AAAAAA")


@pytest.mark.parametrize("key", ["RSA 3", "EC 2"])
def test_a_key_that_is_not_known_is_named(key: str) -> None:
    algorithm = "RS256" if key.startswith("RSA") else "ES256"
    assert refused(signed(key, algorithm)).key_id == key
    assert refused(signed(key, algorithm, kid="RSA 1" if "RSA" in key else "EC 1")).key_id is None


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "elsewhere"},
        {"aud": ["a", "b"]},
        {"iss": "https://other"},
        {"exp": 1470},
        {"exp": "soon"},
        {"exp": -1},
        {"nbf": 1531},
        {"iat": "then"},
        {"sub": ""},
        {"sub": "  "},
        {"sub": 7},
        {"scope": 7},
        {"scope": [7]},
        {"without": ("aud",)},
        {"without": ("iss",)},
        {"without": ("exp",)},
        {"without": ("iat",)},
        {"without": ("sub",)},
    ],
)
def test_claims_that_do_not_suffice(claims: dict[str, Any]) -> None:
    assert refused(signed(**claims)).key_id is None


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["x", "kafka"]},
        {"exp": 1471},
        {"nbf": 1530},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"exp": 2000.5},
    ],
)
def test_claims_that_do(claims: dict[str, Any]) -> None:
    assert check(signed(**claims)).user == "alice"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (signed(exp=1470), "it has expired"),
        (signed(nbf=1531), "it is not valid yet"),
        (signed(aud="elsewhere"), "udience"),
        (signed(without=("aud",)), '"aud"'),
        (signed(iss="https://other"), "issuer"),
        (signed(without=("exp",)), '"exp"'),
        (signed(sub=""), "the claim sub is no text"),
        (signed("RSA 3", kid="RSA 1"), "ignature"),
        (signed("RSA 3"), "no key of the issuer fits it (alg=RS256, kid=RSA 3)"),
        (unsigned(), "no key of the issuer fits it (alg=none, kid=None)"),
        ("part.other", "it is no token: "),
    ],
)
def test_the_reason_says_what_is_wrong_and_nothing_of_the_token(token: str, why: str) -> None:
    text = str(refused(token))
    assert why in text
    assert not [part for part in token.split(".") if part and part in text]


def test_the_user_may_be_another_claim() -> None:
    assert check(signed(email="a@b"), user_claim="email").user == "a@b"
    assert check(signed(sub=" alice ")).user == "alice"


def test_what_need_not_be_verified_is_not() -> None:
    assert check(signed(aud="x"), audiences=()).user == "alice"
    assert check(signed(without=("aud",)), audiences=()).user == "alice"
    assert check(signed(iss="x"), issuer=None).user == "alice"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "a.b.c",
        "..",
        "e30.e30.",
        "e30.e30.e30",
        base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".e30.e30",
        base64.urlsafe_b64encode(b'{"alg":"RS256","kid":7}').decode() + ".e30.e30",
        base64.urlsafe_b64encode(b'{"alg":["RS256"]}').decode().rstrip("=") + ".e30.e30",
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    refused(token)
