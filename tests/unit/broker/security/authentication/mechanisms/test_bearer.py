import logging

import pytest

from broker.fairness import Lane
from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.mechanisms.bearer import (
    BearerMechanism,
    InvalidTokenError,
    Validate,
    ValidToken,
)
from broker.security.authentication.outcomes import (
    Answer,
    AuthenticatedUser,
    Progress,
    RefusedError,
)
from protocol.sasl.oauthbearer import CONFIRMED, build_bearer
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock
from tests.support.sasl import Door, handshake_context, token_context


class FakeValidator:
    """Accepts the token `alice`."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def ready(self) -> Validate:
        def validate(token: str, now_ms: int) -> ValidToken:
            if token == "scopeless":
                raise InvalidTokenError("no scope", missing_scope="[a]")
            if token == "keyless":
                raise InvalidTokenError("no key\n\x1b" + 300 * "k", key_id="k")
            if token != "alice":
                raise InvalidTokenError("it has expired")
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
    ("token", "answer", "missing", "why"),
    [
        ("bob", b'{"status":"invalid_token"}', [], "it has expired"),
        ("keyless", b'{"status":"invalid_token"}', ["k"], "no key^J^[" + 192 * "k"),
        ("scopeless", b'{"status":"insufficient_scope", "scope":"[a]"}', [], "no scope"),
    ],
)
def test_another_is_answered_with_a_status_and_refused_when_that_is_confirmed(
    exchange: Exchange,
    validator: FakeValidator,
    token: str,
    answer: bytes,
    missing: list[str],
    why: str,
) -> None:
    progress = at_once(exchange.evaluate(build_bearer(token)))
    assert progress == Progress(answer, refusal=f"{answer.decode()}: {why}")
    assert validator.missing == missing
    with pytest.raises(RefusedError) as caught:
        at_once(exchange.evaluate(CONFIRMED))
    assert caught.value.told == answer.decode()
    assert caught.value.is_logged


def test_the_log_says_why_also_of_a_client_that_leaves_with_the_status(
    validator: FakeValidator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    door = Door((BearerMechanism(validator, 0, Lane(1), ManualClock()),))
    authenticator = door.authenticator()
    begin(authenticator.shake_hands(handshake_context(), "OAUTHBEARER"))
    answer = begin(authenticator.authenticate(token_context(), build_bearer("bob"))).reply
    assert answer == Answer(message=b'{"status":"invalid_token"}')
    authenticator.forget()
    assert caplog.messages == [
        "Failed authentication with /5.6.7.8 (channelId=1.2.3.4:9092-5.6.7.8:5000-1)"
        ' ({"status":"invalid_token"}: it has expired)'
    ]


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
