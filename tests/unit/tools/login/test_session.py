"""A login over a connection that is a function."""

import base64
import json

import pytest

from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.sasl.conversations import LoginError
from protocol.sasl.oauthbearer import build_refusal, parse_bearer
from protocol.sasl.plain import parse_plain
from tools.errors import CommandError, LoginRefused
from tools.login.session import Ask, login_of

PLAIN = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "secret",
}
BEARER = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.config": "principal=alice",
}


class FakeBroker:
    """Answers SaslHandshake and SaslAuthenticate with the codes that a test sets."""

    def __init__(self, shaken: int = 0, code: int = 0, text: str | None = None) -> None:
        self.shaken, self.code, self.text = shaken, code, text
        self.lifetime_ms = 0
        self.answer = b""
        self.mechanisms: list[str] = []
        self.messages: list[bytes] = []

    def ask(self, request: object, response: object, *, least: int = 0) -> object:
        if isinstance(request, SaslHandshakeRequest):
            assert (response, least) == (SaslHandshakeResponse, 1)
            self.mechanisms.append(request.mechanism)
            return SaslHandshakeResponse(error_code=self.shaken, mechanisms=["A", "B"])
        assert isinstance(request, SaslAuthenticateRequest)
        self.messages.append(bytes(request.auth_bytes))
        return SaslAuthenticateResponse(
            error_code=self.code,
            error_message=self.text,
            auth_bytes=self.answer,
            session_lifetime_ms=self.lifetime_ms,
        )


def test_a_mechanism_that_nobody_set_is_named_as_such() -> None:
    protocol = {"security.protocol": "SASL_SSL"}
    with pytest.raises(CommandError, match="=GSSAPI, which holds where none is set: only with"):
        login_of(protocol)
    with pytest.raises(CommandError, match="=GSSAPI: only with"):
        login_of({**protocol, "sasl.mechanism": "GSSAPI"})


def test_a_token_that_is_not_there_is_a_login_that_fails() -> None:
    with pytest.raises(LoginRefused, match="OAUTHBEARER needs a token"):
        perform({**BEARER, "sasl.oauthbearer.config": ""}, FakeBroker())


def perform(settings: dict[str, str], broker: FakeBroker) -> float | None:
    login = login_of(settings)
    assert login is not None
    ask: Ask = broker.ask  # type: ignore[assignment]
    return login.perform(ask)


def test_without_sasl_there_is_no_login() -> None:
    assert login_of({}) is None
    assert login_of({"security.protocol": "SSL", "sasl.username": "x"}) is None


def test_a_login_by_password() -> None:
    broker = FakeBroker()
    assert perform(PLAIN, broker) is None
    assert broker.mechanisms == ["PLAIN"]
    assert [parse_plain(message) for message in broker.messages] == [("", "alice", "secret")]


def test_a_session_is_renewed_before_its_end() -> None:
    broker = FakeBroker()
    broker.lifetime_ms = 10_000
    assert perform(PLAIN, broker) == pytest.approx(8.5)


def test_an_unsecured_token() -> None:
    broker = FakeBroker()
    perform(BEARER, broker)
    token = parse_bearer(broker.messages[0]).token
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == "alice"


@pytest.mark.parametrize(
    ("broker", "told"),
    [
        (FakeBroker(shaken=ErrorCode.UNSUPPORTED_SASL_MECHANISM), "it offers A, B, and not PLAIN"),
        (FakeBroker(shaken=ErrorCode.ILLEGAL_SASL_STATE), "it asks nobody who they are here"),
        (FakeBroker(shaken=ErrorCode.REQUEST_TIMED_OUT), "timed out"),
        (FakeBroker(code=ErrorCode.SASL_AUTHENTICATION_FAILED, text="No, alice"), "No, alice"),
        (FakeBroker(code=ErrorCode.SASL_AUTHENTICATION_FAILED), "(?i)authentication failed"),
    ],
)
def test_a_broker_that_refuses(broker: FakeBroker, told: str) -> None:
    with pytest.raises(LoginError, match=told):
        perform(PLAIN, broker)


def test_a_token_that_is_refused_is_told_in_words() -> None:
    status = build_refusal("invalid_token").decode()
    broker = FakeBroker(code=ErrorCode.SASL_AUTHENTICATION_FAILED, text=status)
    with pytest.raises(LoginError, match=r"^it does not accept the token: invalid_token$"):
        perform(BEARER, broker)


def test_an_answer_that_is_none() -> None:
    broker = FakeBroker()
    with pytest.raises(LoginError, match="an answer that is none"):
        perform({**PLAIN, "sasl.mechanism": "SCRAM-SHA-256"}, broker)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "only with PLAIN, SCRAM-SHA-256"),
        ({"sasl.username": ""}, r"PLAIN needs sasl\.username"),
        ({"sasl.password": ""}, r"PLAIN needs sasl\.password"),
    ],
)
def test_settings_that_do_not_suffice(settings: dict[str, str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        login_of({**PLAIN, **settings})
    without = {key: value for key, value in PLAIN.items() if key != "sasl.mechanism"}
    with pytest.raises(CommandError, match=r"sasl\.mechanism=GSSAPI"):
        login_of(without)
