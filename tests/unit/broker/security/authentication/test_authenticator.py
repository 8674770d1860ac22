"""The state machine of a connection's authentication, without frames."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.authentication.authenticator import Admission, Authenticator
from broker.security.authentication.outcomes import Answer, AuthenticatedUser
from broker.security.authentication.states import SaslState
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from storage.waits import Signal, at_once
from tests.support.api_calls import context
from tests.support.begun import Begun, begin
from tests.support.sasl import Door, FakeMechanism, handshake_context, token_context

METADATA, VERSIONS = ApiKey.METADATA, ApiKey.API_VERSIONS
HANDSHAKE, TOKEN = ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE
INVALID = "Authentication failed during {} due to invalid credentials with SASL mechanism FAKE"


def shaken(door: Door, version: int = 1, mechanism: str = "FAKE") -> Authenticator:
    authenticator = door.authenticator()
    assert begin(authenticator.shake_hands(handshake_context(version), mechanism)).reply == Answer()
    return authenticator


def say(authenticator: Authenticator, text: str, version: int = 1) -> Answer:
    reply: Answer = begin(authenticator.authenticate(token_context(version), text.encode())).reply
    return reply


def let_in(door: Door, version: int = 1) -> Authenticator:
    authenticator = shaken(door)
    assert say(authenticator, "alice", version).code is ErrorCode.NONE
    return authenticator


# ---- the first time


def test_a_client_that_proves_who_it_is_is_let_in() -> None:
    door = Door()
    authenticator = shaken(door)
    seen: list[AuthenticatedUser] = []
    authenticator.entered = seen.append
    assert say(authenticator, "alice more") == Answer(message=b"go on")
    assert seen == []
    assert say(authenticator, "alice") == Answer(message=b"welcome")
    assert [user.principal for user in seen] == ["User:alice"]
    assert authenticator.admit(METADATA, 1e9) is Admission.HANDLED
    assert door.listener.statistics().successful == 1
    authenticator.tell_versions()  # as often as it likes
    assert authenticator.admit(METADATA, 1e9) is Admission.HANDLED


def test_s_sec_1_before_the_handshake_only_two_apis_are_answered() -> None:
    authenticator = Door().authenticator()
    for key in ApiKey:
        answered = key in (VERSIONS, HANDSHAKE)
        expected = Admission.HANDLED if answered else Admission.CLOSED
        assert authenticator.admit(key, 0.0) is expected
    assert authenticator.admit(999, 0.0) is Admission.CLOSED


def test_versions_are_told_once() -> None:
    authenticator = Door().authenticator()
    assert begin(authenticator.ask_versions(context(VERSIONS, 3))).reply
    assert authenticator.admit(VERSIONS, 0.0) is Admission.HANDLED  # it had an error: again
    authenticator.tell_versions()
    assert authenticator.admit(VERSIONS, 0.0) is Admission.CLOSED
    assert authenticator.admit(HANDSHAKE, 0.0) is Admission.HANDLED


def test_during_the_exchange_anything_else_is_a_failure() -> None:
    for key in (VERSIONS, HANDSHAKE):
        assert (
            shaken(Door()).admit(key, 0.0) is Admission.HANDLED
        )  # and answered ILLEGAL_SASL_STATE
    door = Door()
    authenticator = shaken(door)
    assert authenticator.admit(TOKEN, 0.0) is Admission.HANDLED
    assert authenticator.admit(METADATA, 0.0) is Admission.REFUSED
    ctx = context(METADATA, 9)
    assert begin(authenticator.refuse(ctx)).reply is None
    assert ctx.close_connection
    assert authenticator.state is SaslState.FAILED
    assert door.listener.statistics().failed == 1


def test_a_second_handshake_or_versions_during_the_exchange_are_illegal() -> None:
    ctx = handshake_context()
    assert begin(shaken(Door()).shake_hands(ctx, "FAKE")).reply == Answer(
        ErrorCode.ILLEGAL_SASL_STATE
    )
    assert ctx.close_connection
    ctx = context(VERSIONS, 3)
    assert begin(shaken(Door()).ask_versions(ctx)).reply is False
    assert ctx.close_connection


def test_an_unknown_mechanism_is_refused() -> None:
    door = Door()
    authenticator, ctx = door.authenticator(), handshake_context()
    answer = begin(authenticator.shake_hands(ctx, "fake")).reply
    assert answer == Answer(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
    assert ctx.close_connection
    assert authenticator.offered == ("FAKE", "OTHER")


def test_a_part_of_a_name_that_a_client_chose_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    begin(Door().authenticator().shake_hands(handshake_context(), "x" * 30_000))
    assert f"(Unsupported SASL mechanism {'x' * 100})" in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [("told", "the client learns this"), ("wrong", INVALID.format("authentication"))],
)
def test_a_client_learns_no_more_than_it_may(text: str, told: str) -> None:
    authenticator, ctx = shaken(Door()), token_context()
    answer = begin(authenticator.authenticate(ctx, text.encode())).reply
    assert answer == Answer(ErrorCode.SASL_AUTHENTICATION_FAILED, told)
    assert ctx.close_connection
    assert ctx.released
    assert authenticator.state is SaslState.FAILED
    assert authenticator.admit(TOKEN, 0.0) is Admission.CLOSED


def test_a_bug_ends_the_connection() -> None:
    authenticator, ctx = shaken(Door()), token_context()
    with pytest.raises(RuntimeError, match="a bug"):
        at_once(authenticator.authenticate(ctx, b"crash"))
    assert ctx.close_connection
    assert authenticator.state is SaslState.FAILED


def test_a_handshake_of_version_0_is_followed_by_raw_messages() -> None:
    authenticator = shaken(Door(), version=0)
    assert authenticator.is_raw
    assert not authenticator.is_lost
    assert say(authenticator, "alice more", 0) == Answer(message=b"go on")
    assert authenticator.is_raw
    assert say(authenticator, "alice", 0) == Answer(message=b"welcome")
    assert not authenticator.is_raw


def test_a_refusal_waits_by_a_timer_and_not_by_a_task() -> None:
    door = Door(delay_s=0.1)
    authenticator = shaken(door)
    refusal: Begun[Answer] = begin(authenticator.authenticate(token_context(), b"wrong"))
    assert door.listener.statistics().failed == 1
    door.clock.advance(0.09)
    door.deadlines.run_due()
    assert not refusal.done
    door.clock.advance(0.01)
    door.deadlines.run_due()
    assert refusal.reply.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_client_that_does_not_wait_for_its_refusal_leaves_no_timer() -> None:
    door = Door(delay_s=0.1)
    refusal = begin(shaken(door).authenticate(token_context(), b"wrong"))
    assert door.deadlines.statistics().active == 1
    refusal.leave()
    assert door.deadlines.statistics().active == 0


def test_a_client_that_leaves_during_the_exchange_is_neither_let_in_nor_counted() -> None:
    waits: Signal[None] = Signal()
    door = Door((FakeMechanism(waits_for=waits),))
    exchange = begin(shaken(door).authenticate(token_context(), b"alice"))
    exchange.leave()
    statistics = door.listener.statistics()
    assert (statistics.successful, statistics.failed) == (0, 0)


@pytest.mark.parametrize(("version", "without"), [(0, 1), (1, 0), (2, 0)])
def test_a_client_that_cannot_authenticate_again_is_counted(version: int, without: int) -> None:
    door = Door()
    let_in(door, version)
    assert door.listener.statistics().without_sessions == without


def test_failures_are_logged_in_kafkas_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door = Door()
    say(shaken(door), "told")
    door.authenticator().note_closed(METADATA)
    door.authenticator().note_closed(4711)
    door.authenticator().note_bad_size()
    door.authenticator().note_bad_bytes("no header")
    client = "/5.6.7.8 (channelId=1.2.3.4:9092-5.6.7.8:5000-1)"
    closed = f"Unexpected error from {client}; closing connection"
    assert [record.getMessage() for record in caplog.records] == [
        f"Failed authentication with {client} (the client learns this)",
        f"{closed} (Unexpected Kafka request of type METADATA during SASL handshake.)",
        f"{closed} (Unexpected Kafka request of type 4711 during SASL handshake.)",
        f"Failed authentication with {client} (Failing SASL authentication due to invalid receive"
        " size)",
        f"{closed} (no header)",
    ]


def test_why_a_proof_is_refused_is_logged_once_and_at_once_as_the_client_may_leave(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    line = "Failed {} with /5.6.7.8 (channelId=1.2.3.4:9092-5.6.7.8:5000-1) ({})"
    first = line.format("authentication", "bad: it has expired")
    door = Door((FakeMechanism(max_reauth_ms=5000),))
    authenticator = shaken(door)
    assert say(authenticator, "bad") == Answer(message=b"bad")
    assert caplog.messages == [first]
    assert door.listener.statistics().failed == 0  # as in Kafka: it may go on, or leave
    assert say(authenticator, "heard") == Answer(ErrorCode.SASL_AUTHENTICATION_FAILED, "bad")
    assert caplog.messages == [first]
    assert door.listener.statistics().failed == 1
    authenticator = shaken(door)
    assert say(authenticator, "bad") == say(authenticator, "bad") == Answer(message=b"bad")
    assert say(authenticator, "told").code is ErrorCode.SASL_AUTHENTICATION_FAILED
    told = line.format("authentication", "the client learns this")
    assert caplog.messages == [first, first, first, told]
    caplog.clear()
    authenticator = let_in(door)
    assert again(authenticator) == Answer()
    say(authenticator, "bad")
    assert caplog.messages == [line.format("re-authentication", "bad: it has expired")]
    say(authenticator, "heard")
    assert len(caplog.messages) == 1
    assert door.listener.statistics().failed_again == 1


# ---- sessions (KIP-368)


def test_a_complete_connection_without_an_end_cannot_begin_again() -> None:
    authenticator = let_in(Door())
    assert again(authenticator) == Answer(ErrorCode.ILLEGAL_SASL_STATE)
    assert say(authenticator, "alice") == Answer(
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received after successful authentication",
    )
    assert authenticator.state is SaslState.COMPLETE


@pytest.mark.parametrize(
    ("max_reauth_ms", "expires_in_ms", "lifetime_ms"),
    [
        (5000, None, 5000),
        (0, 7000, 7000),
        (5000, 7000, 5000),
        (9000, 7000, 7000),
        (0, -1, 0),
        (0, None, 0),
    ],
)
def test_s_sec_2_the_lifetime_of_a_session(
    max_reauth_ms: int, expires_in_ms: int | None, lifetime_ms: int
) -> None:
    mechanism = FakeMechanism(max_reauth_ms=max_reauth_ms)
    door = Door((mechanism,))
    if expires_in_ms is not None:
        mechanism.expires_ms = door.clock.wall_ms() + expires_in_ms
    authenticator = shaken(door)
    assert say(authenticator, "alice") == Answer(message=b"welcome", lifetime_ms=lifetime_ms)
    now = door.clock.monotonic()
    if (max_reauth_ms, expires_in_ms) == (0, None):
        assert authenticator.expires_at is None
    else:
        assert authenticator.expires_at == now + lifetime_ms / 1000


def again(authenticator: Authenticator, mechanism: str = "FAKE") -> Answer:
    reply: Answer = begin(authenticator.shake_hands(handshake_context(), mechanism)).reply
    return reply


def with_session() -> tuple[Door, Authenticator]:
    door = Door((FakeMechanism(max_reauth_ms=5000), FakeMechanism("OTHER")))
    return door, let_in(door)


def test_s_sec_2_a_session_that_has_expired_ends_with_the_next_request() -> None:
    door, authenticator = with_session()
    now = door.clock.monotonic()
    assert authenticator.admit(METADATA, now + 5) is Admission.HANDLED
    assert authenticator.admit(METADATA, now + 5.001) is Admission.EXPIRED
    assert authenticator.admit(VERSIONS, now + 5.001) is Admission.EXPIRED
    assert authenticator.admit(HANDSHAKE, now + 5.001) is Admission.HANDLED
    authenticator.note_expired()
    assert door.listener.statistics().expired == 1


def test_s_sec_2_a_session_is_renewed_by_another_handshake() -> None:
    door, authenticator = with_session()
    door.clock.advance(4)
    assert again(authenticator) == Answer()
    assert authenticator.admit(METADATA, door.clock.monotonic()) is Admission.REFUSED
    door.clock.advance(0.25)
    assert say(authenticator, "alice").lifetime_ms == 5000
    assert authenticator.expires_at == door.clock.monotonic() + 5
    statistics = door.listener.statistics()
    assert (statistics.successful, statistics.successful_again) == (1, 1)
    assert statistics.latency_avg_s == statistics.latency_max_s == 0.25


def test_s_sec_2_once_a_second_at_most() -> None:
    door, authenticator = with_session()
    assert again(authenticator) == Answer()
    say(authenticator, "alice")
    door.clock.advance(0.999)
    assert again(authenticator) == Answer(ErrorCode.ILLEGAL_SASL_STATE)
    assert authenticator.state is SaslState.COMPLETE
    door.clock.advance(0.001)
    assert again(authenticator) == Answer()


def test_s_sec_2_a_session_that_expired_within_that_second_is_closed() -> None:
    door = Door((FakeMechanism(max_reauth_ms=500),))
    authenticator = let_in(door)
    again(authenticator)
    say(authenticator, "alice")
    door.clock.advance(0.75)
    now = door.clock.monotonic()
    assert authenticator.admit(HANDSHAKE, now) is Admission.EXPIRED


def test_s_sec_2_the_principal_must_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    door, authenticator = with_session()
    again(authenticator)
    told = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert say(authenticator, "bob") == Answer(ErrorCode.SASL_AUTHENTICATION_FAILED, told)
    assert f"({told})" in caplog.text
    assert authenticator.identity == AuthenticatedUser("alice")
    assert door.listener.statistics().failed_again == 1


def test_s_sec_2_the_mechanism_must_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, authenticator = with_session()
    assert again(authenticator, "OTHER") == Answer()
    assert authenticator.is_raw
    assert authenticator.is_lost
    ctx = token_context()
    assert begin(authenticator.refuse(ctx)).reply is None
    assert ctx.close_connection
    assert "Failed re-authentication with " in caplog.text
    assert (
        "(SASL mechanism 'OTHER' requested by client is not supported for re-authentication of"
        " mechanism 'FAKE')"
    ) in caplog.text


def test_a_failed_re_authentication_ends_the_connection() -> None:
    door, authenticator = with_session()
    again(authenticator)
    assert say(authenticator, "wrong").text == INVALID.format("re-authentication")
    assert authenticator.admit(METADATA, door.clock.monotonic()) is Admission.CLOSED


# ---- whatever a client does


class Play:
    """One client that does anything, and what must hold whatever it does."""

    def __init__(self) -> None:
        self.door = Door((FakeMechanism(max_reauth_ms=3000), FakeMechanism("OTHER")))
        self.authenticator = self.door.authenticator()
        self.authenticator.entered = self.entered
        self.proofs: list[str] = []
        self.last = ""
        self.was_open = False

    def entered(self, user: AuthenticatedUser) -> None:
        assert user.user == self.last, "let in without proof"
        self.proofs.append(user.user)
        self.was_open = True

    def act(self, action: tuple[str, str, int]) -> bool:
        """Do it as a connection does; return whether the connection goes on."""
        kind, text, version = action
        authenticator = self.authenticator
        if kind == "time":
            self.door.clock.advance(version)
            return True
        now = self.door.clock.monotonic()
        if authenticator.is_raw:
            ctx = context(TOKEN, 0)
            if authenticator.is_lost:
                assert begin(authenticator.refuse(ctx)).reply is None
            else:
                self.last = text
                assert begin(authenticator.authenticate(ctx, text.encode())).done
            return not ctx.close_connection
        key = {"token": TOKEN, "shake": HANDSHAKE, "ask": VERSIONS, "other": METADATA}[kind]
        admission = authenticator.admit(key, now)
        if admission is Admission.HANDLED:
            return self.handled(kind, text, version)
        assert not (kind == "other" and authenticator.state is SaslState.COMPLETE) or (
            authenticator.expires_at is not None and now > authenticator.expires_at
        )
        return False

    def handled(self, kind: str, text: str, version: int) -> bool:
        authenticator = self.authenticator
        if kind == "other":
            assert authenticator.state is SaslState.COMPLETE
            assert self.proofs
            assert set(self.proofs) == {self.proofs[0]}, "the principal has changed"
            return True
        key = {"token": TOKEN, "shake": HANDSHAKE, "ask": VERSIONS}[kind]
        ctx = context(key, version % 2)
        if kind == "token":
            self.last = text
            assert begin(authenticator.authenticate(ctx, text.encode())).done
        elif kind == "shake":
            assert begin(authenticator.shake_hands(ctx, text)).done
        elif begin(authenticator.ask_versions(ctx)).reply:
            authenticator.tell_versions()
        return not ctx.close_connection


ACTIONS = st.tuples(
    st.sampled_from(("token", "token", "shake", "shake", "ask", "other", "time")),
    st.sampled_from(("alice", "alice more", "bob", "wrong", "told", "FAKE", "FAKE", "OTHER", "")),
    st.integers(0, 3),
)


@given(st.lists(ACTIONS, max_size=25))
def test_nobody_is_served_without_proof_whatever_it_does(
    actions: list[tuple[str, str, int]],
) -> None:
    play = Play()
    for action in actions:
        if not play.act(action):
            break
