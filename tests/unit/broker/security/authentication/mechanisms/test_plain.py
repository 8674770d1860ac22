import hashlib
import hmac
import logging
from collections.abc import Callable

import pytest

from broker.fairness import Lane
from broker.security.authentication.mechanisms import plain
from broker.security.authentication.mechanisms.plain import PlainMechanism
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from config.definition import ConfigError, Password
from config.sasl_settings import PlainSettings
from storage.logging_limit import PERIOD_S
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock

WRONG = "Authentication failed: Invalid username or password"
USERS = {"alice": Password("alice-secret"), "ü": Password("é€")}


def offered(check: str | None = None) -> PlainMechanism:
    return PlainMechanism(PlainSettings(users=USERS, check=check), 0, Lane(1), ManualClock())


def prove(message: bytes, check: str | None = None) -> Progress:
    return at_once(offered(check).begin().evaluate(message))


def refusal(message: bytes, check: str | None = None) -> str | None:
    with pytest.raises(RefusedError) as caught:
        prove(message, check)
    return caught.value.told


@pytest.mark.parametrize(
    ("message", "user"),
    [
        (b"\0alice\0alice-secret", "alice"),
        (b"alice\0alice\0alice-secret", "alice"),
        ("\0ü\0é€".encode(), "ü"),
    ],
)
def test_the_right_password_proves_who_it_is(message: bytes, user: str) -> None:
    assert prove(message) == Progress(b"", AuthenticatedUser(user))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\0alice\0wrong", WRONG),
        (b"\0nobody\0alice-secret", WRONG),
        (b"\0alice\0alice-secre", WRONG),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from"
            " username",
        ),
        (b"bob\0alice\0wrong", WRONG),
        (b"alice\0x", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
    ],
)
def test_refusals_have_the_words_of_kafkas(message: bytes, told: str) -> None:
    assert refusal(message) == told


def test_s_sec_3_an_unknown_user_costs_the_work_of_a_wrong_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = offered()
    work: list[str] = []

    def counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def count(*values: object) -> object:
            work.append(name)
            return function(*values)

        return count

    monkeypatch.setattr(plain, "_hash", counted("hash", plain._hash))
    monkeypatch.setattr(hmac, "compare_digest", counted("compare", hmac.compare_digest))
    for user in (b"alice", b"nobody"):
        with pytest.raises(RefusedError):
            at_once(mechanism.begin().evaluate(b"\0" + user + b"\0wrong"))
    assert work == ["hash", "compare"] * 2


def test_passwords_are_compared_by_hashes_of_one_length() -> None:
    hashes = {*offered()._users.values(), plain._NOBODYS}
    assert {len(one) for one in hashes} == {hashlib.sha256().digest_size}


# ---- a check of one's own


def guess(user: str, password: str) -> bool:
    if user == "broken":
        raise RuntimeError(f"{password} cannot be looked up")
    return password == user[::-1]


def truthy(user: str, password: str) -> bool:
    return "yes"  # type: ignore[return-value]


HERE = f"{__name__}:"


def test_a_check_of_ones_own_is_asked_instead_in_a_thread() -> None:
    exchange = begin(offered(HERE + "guess").begin().evaluate(b"\0carol\0lorac"))
    assert exchange.reply == Progress(b"", AuthenticatedUser("carol"))
    assert exchange.calls == [plain._outcome_of]
    assert refusal(b"\0alice\0alice-secret", HERE + "guess") == WRONG


def test_only_true_is_true() -> None:
    assert refusal(b"\0a\0b", HERE + "truthy") == WRONG


def test_a_check_that_fails_refuses_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    def refused(times: int) -> None:
        for _ in range(times):
            with pytest.raises(RefusedError) as caught:
                at_once(mechanism.begin().evaluate(b"\0broken\0secret"))
            told = "Authentication failed: credentials for user could not be verified"
            assert caught.value.told == told

    clock = ManualClock()
    mechanism = PlainMechanism(PlainSettings(users={}, check=HERE + "guess"), 0, Lane(1), clock)
    refused(5)
    clock.advance(PERIOD_S)
    refused(1)
    [first, second] = caplog.messages
    assert "failed 1 times, last with RuntimeError in " in first
    assert f"{__file__}, line " in first
    assert "failed 5 times" in second
    assert "secret" not in caplog.text
    caplog.set_level(logging.DEBUG)
    refused(1)
    assert "RuntimeError: secret cannot be looked up" in caplog.text


@pytest.mark.parametrize("name", ["nowhere.at.all:check", HERE + "missing", HERE + "USERS"])
def test_a_check_that_is_none_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match="The check of passwords"):
        offered(name)
