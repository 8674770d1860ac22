"""Tokens: made here, or given by an issuer, which is a server of HTTP."""

import base64
import json
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.support.serving import serving_http
from tools.errors import CommandError
from tools.login.tokens import token_of


def claims_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header, claims, signature = token.split(".")
    assert signature == ""
    first, second = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims))
    return first, second


def unsecured(config: str) -> tuple[dict[str, Any], dict[str, str]]:
    token, extensions = token_of({"sasl.oauthbearer.config": config}, 1000.0)
    header, claims = claims_of(token)
    assert header == {"alg": "none"}
    return claims, extensions


def test_unsecured_tokens_say_what_the_setting_says() -> None:
    assert unsecured("principal=alice") == ({"sub": "alice", "iat": 1000, "exp": 4600}, {})
    claims, extensions = unsecured(
        "principalClaimName=name principal=bob scopeClaimName=roles scope=a,b lifeSeconds=5"
        " extension_cluster=one"
    )
    assert claims == {"name": "bob", "roles": ["a", "b"], "iat": 1000, "exp": 1005}
    assert extensions == {"cluster": "one"}


def test_without_a_source_of_tokens_both_are_named() -> None:
    with pytest.raises(CommandError, match=r"method=oidc with .*url, or sasl\.oauthbearer\.config"):
        token_of({}, 0.0)


class Issuer:
    """Answers whoever asks for a token, and keeps who asked last and for what."""

    def __init__(
        self, status: int = 200, answer: bytes = b'{"access_token": "a.b.c", "expires_in": 60}'
    ) -> None:
        self.status, self.answer = status, answer
        self.credentials = ""
        self.form: dict[str, list[str]] = {}

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        assert request.path == "/token"
        size = int(request.headers["Content-Length"])
        self.credentials = request.headers["Authorization"]
        self.form = parse_qs(request.rfile.read(size).decode())
        request.send_response(self.status)
        request.end_headers()
        request.wfile.write(self.answer)


def oidc(url: str, **more: str) -> dict[str, str]:
    return {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": f"{url}/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "se:cret",
        **{f"sasl.oauthbearer.{name}": value for name, value in more.items()},
    }


def test_an_issuer_gives_a_token_for_the_clients_secret() -> None:
    issuer = Issuer()
    with serving_http(issuer) as url:
        settings = oidc(url, scope="kafka", extensions="cluster=one,pool=two")
        assert token_of(settings, 0.0) == ("a.b.c", {"cluster": "one", "pool": "two"})
        assert base64.b64decode(issuer.credentials.removeprefix("Basic ")) == b"me:se%3Acret"
        assert issuer.form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
        token_of(oidc(url), 0.0)
        assert issuer.form == {"grant_type": ["client_credentials"]}


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (401, b"no", "gives no token: HTTP Error 401"),
        (200, b"no", "cannot be asked for a token"),
        (200, b'{"token": 1}', "cannot be asked for a token"),
    ],
)
def test_an_issuer_that_gives_none(status: int, answer: bytes, told: str) -> None:
    with serving_http(Issuer(status, answer)) as url, pytest.raises(CommandError, match=told):
        token_of(oidc(url), 0.0)


def test_an_issuer_that_is_not_there() -> None:
    with serving_http(Issuer()) as url:
        pass
    with pytest.raises(CommandError, match=r"cannot be asked for a token: .*refused"):
        token_of(oidc(url), 0.0)
    with pytest.raises(CommandError, match="an http: or https: URL"):
        token_of(oidc("file:///etc/passwd"), 0.0)
