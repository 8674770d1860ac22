import pytest

from broker.fairness import Lane
from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.mechanisms.bearer import (
    BearerMechanism,
    InvalidTokenError,
    Validate,
    ValidToken,
)
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from protocol.sasl.oauthbearer import CONFIRMED, build_bearer
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock


class FakeValidator:
    """Accepts the token `alice`."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def ready(self) -> Validate:
        def validate(token: str, now_ms: int) -> ValidToken:
            if token == "scopeless":
                raise InvalidTokenError("no", missing_scope="[a]")
            if token == "keyless":
                raise InvalidTokenError("no", key_id="k")
            if token != "alice":
                raise InvalidTokenError("no")
            return ValidToken("alice", now_ms + 5)

        return validate

    def note_missing(self, key_id: str) -> None:
        self.missing.append(key_id)


@pytest.fixture
def validator() -> FakeValidator:
    return FakeValidator()


@pytest.fixture
def exchange(validator: FakeValidator) -> Exchange:
    return BearerMechanism(validator, 0, Lane(1), ManualClock(wall_ms=100)).begin()


def test_a_valid_token_proves_who_it_is(exchange: Exchange) -> None:
    attempt = begin(exchange.evaluate(build_bearer("alice", {"traceId": "1"})))
    assert attempt.reply == Progress(b"", AuthenticatedUser("alice", expires_ms=105))
    assert len(attempt.calls) == 1  # in a thread


@pytest.mark.parametrize(
    ("token", "answer", "missing"),
    [
        ("bob", b'{"status":"invalid_token"}', []),
        ("keyless", b'{"status":"invalid_token"}', ["k"]),
        ("scopeless", b'{"status":"insufficient_scope", "scope":"[a]"}', []),
    ],
)
def test_another_is_answered_with_a_status_and_refused_when_that_is_confirmed(
    exchange: Exchange, validator: FakeValidator, token: str, answer: bytes, missing: list[str]
) -> None:
    assert at_once(exchange.evaluate(build_bearer(token))) == Progress(answer)
    assert validator.missing == missing
    with pytest.raises(RefusedError) as caught:
        at_once(exchange.evaluate(CONFIRMED))
    assert caught.value.told == answer.decode()


def test_a_client_may_try_another_token_instead(exchange: Exchange) -> None:
    at_once(exchange.evaluate(build_bearer("bob")))
    assert at_once(exchange.evaluate(build_bearer("alice"))).identity is not None


@pytest.mark.parametrize("message", [b"", CONFIRMED, b"garbage", b"n,,\x01auth=Basic x\x01\x01"])
def test_what_is_no_message_is_refused_without_a_word(exchange: Exchange, message: bytes) -> None:
    with pytest.raises(RefusedError) as caught:
        at_once(exchange.evaluate(message))
    assert caught.value.told is None


def test_nobody_acts_as_somebody_else(exchange: Exchange) -> None:
    message = build_bearer("alice").replace(b"n,,", b"n,a=bob,")
    with pytest.raises(RefusedError) as caught:
        at_once(exchange.evaluate(message))
    assert caught.value.told == (
        "Authentication failed: Client requested an authorization id (bob) that is different from"
        " the token's principal name (alice)"
    )
    own = build_bearer("alice").replace(b"n,,", b"n,a=alice,")
    assert at_once(exchange.evaluate(own)).identity is not None
