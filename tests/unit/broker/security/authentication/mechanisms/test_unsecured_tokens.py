import base64
from typing import Any

import pytest

from broker.security.authentication.mechanisms.bearer import InvalidTokenError, ValidToken
from broker.security.authentication.mechanisms.unsecured_tokens import validate
from config.sasl_settings import UnsecuredTokens
from tests.support.tokens import NOW_MS, signed, unsigned


def settings(**changes: Any) -> UnsecuredTokens:
    fields: dict[str, Any] = {
        "user_claim": "sub",
        "scope_claim": "scope",
        "required_scope": (),
        "clock_skew_ms": 0,
    }
    return UnsecuredTokens(**{**fields, **changes})


def refused(token: str, **changes: Any) -> InvalidTokenError:
    with pytest.raises(InvalidTokenError) as caught:
        validate(settings(**changes), token, NOW_MS)
    return caught.value


def test_a_token_that_nobody_has_signed_says_who_it_is() -> None:
    assert validate(settings(), unsigned(), NOW_MS) == ValidToken("alice", 2_000_000)
    assert validate(settings(user_claim="me"), unsigned(me="bob"), NOW_MS).user == "bob"


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1500}, {"exp": None}, {"iat": 1501}, {"iat": 1800, "exp": 1700}, {"sub": ""}],
)
def test_claims_that_do_not_suffice(claims: dict[str, Any]) -> None:
    refused(unsigned(**claims))


def test_clocks_may_differ_by_so_much() -> None:
    for claims in ({"exp": 1499}, {"iat": 1502}):
        refused(unsigned(**claims), clock_skew_ms=1000)
        assert validate(settings(clock_skew_ms=2001), unsigned(**claims), NOW_MS)


def test_a_missing_scope_is_told() -> None:
    required = ("a", "b")
    assert refused(unsigned(scope="a"), required_scope=required).missing_scope == "[a, b]"
    assert refused(unsigned(), required_scope=required).missing_scope == "[a, b]"
    assert validate(settings(required_scope=required), unsigned(scope=["b", "c", "a"]), NOW_MS)
    assert refused(unsigned(sub="")).missing_scope is None


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b",
        "a.b.c.",
        signed(),
        unsigned({"alg": "RS256"}),
        unsigned() + "x",
        "é.e30.",
        "W10.e30.",
        base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=") + ".e30.",
    ],
)
def test_what_is_no_unsecured_token_is_refused(token: str) -> None:
    refused(token)
