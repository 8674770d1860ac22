import json
import logging
from typing import Any

import jwt
import pytest

from broker.security.authentication.mechanisms.issuer_keys import (
    ASKED_AGAIN_S,
    IssuerKeys,
    parse_keys,
)
from config.definition import ConfigError
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.manual_clock import ManualClock
from tests.support.tokens import jwk, jwks, private_key, secured

URL = "https://issuer/keys"


class FakeWeb:
    """One document; an error while it is None."""

    def __init__(self) -> None:
        self.document: bytes | None = jwks(jwk("RSA 1"))
        self.asked: list[str] = []

    def read(self, url: str) -> bytes:
        self.asked.append(url)
        if self.document is None:
            raise OSError("it is down")
        return self.document


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def web() -> FakeWeb:
    return FakeWeb()


@pytest.fixture
def keys(web: FakeWeb, clock: ManualClock) -> IssuerKeys:
    return IssuerKeys(secured(jwks_url=URL), web, clock)


def ids(keys: IssuerKeys) -> list[str | None]:
    return [key.key_id for key in keys.keys]


def test_keys_are_read_in_a_thread(keys: IssuerKeys, web: FakeWeb) -> None:
    reading = begin(keys.load())
    assert reading.done
    assert len(reading.calls) == 1
    assert web.asked == [URL]
    assert ids(keys) == ["RSA 1"]


def test_keys_that_change_are_read_again(keys: IssuerKeys, web: FakeWeb) -> None:
    at_once(keys.load())
    task = keys.task()
    assert (task.initial_delay_ms, task.period_ms) == (60_000, 60_000)
    web.document = jwks(jwk("RSA 2"))
    assert at_once(task.run()) is None
    assert ids(keys) == ["RSA 2"]


def test_while_they_cannot_be_read_the_last_ones_count_and_the_waits_double(
    keys: IssuerKeys, web: FakeWeb, caplog: pytest.LogCaptureFixture
) -> None:
    at_once(keys.load())
    web.document = None
    run = keys.task().run
    assert [at_once(run()) for _ in range(6)] == [100, 200, 400, 800, 1000, 1000]
    assert ids(keys) == ["RSA 1"]
    assert f"The keys at {URL} cannot be read: it is down" in caplog.text
    web.document = b"{}"
    assert at_once(run()) == 1000
    web.document = jwks(jwk("EC 1"))
    assert at_once(run()) is None
    assert ids(keys) == ["EC 1"]


def test_an_issuer_that_is_down_keeps_no_broker_from_starting(
    keys: IssuerKeys, web: FakeWeb, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    web.document = None
    at_once(keys.load())
    assert keys.task().initial_delay_ms == 100
    assert "it is down" in caplog.text


@pytest.mark.parametrize("document", [None, b"", b"[]", b'{"keys": []}', b'{"keys": {}}'])
def test_a_file_must_have_keys(web: FakeWeb, clock: ManualClock, document: bytes | None) -> None:
    web.document = document
    with pytest.raises(ConfigError, match=r"The keys in file:/keys\.json cannot be used: "):
        at_once(IssuerKeys(secured(jwks_url="file:/keys.json"), web, clock).load())


def test_a_key_that_a_token_misses_is_asked_for_soon_but_not_again_and_again(
    keys: IssuerKeys, clock: ManualClock, web: FakeWeb
) -> None:
    hurried: list[str] = []
    at_once(keys.load())
    task = keys.task()
    assert task.hurry is not None
    task.hurry(lambda: hurried.append("now"))
    keys.ask_for("new")
    assert hurried == []  # they have just been read
    clock.advance(1)
    for _ in range(3):
        keys.ask_for("new")
    assert hurried == ["now"]
    keys.ask_for("other")
    assert hurried == ["now"] * 2
    clock.advance(ASKED_AGAIN_S)
    keys.ask_for("new")
    keys.ask_for("n" * 1001)
    assert hurried == ["now"] * 3
    web.document = jwks(jwk("RSA 1", kid="new"))
    at_once(task.run())
    clock.advance(1)
    keys.ask_for("new")  # gone again
    assert hurried == ["now"] * 4


def test_names_that_are_asked_for_are_forgotten_in_time(
    keys: IssuerKeys, clock: ManualClock
) -> None:
    clock.advance(1)
    for n in range(1000):
        keys.ask_for(str(n))
    assert len(keys._asked_for) == 16


def test_what_is_no_key_for_signatures_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    found = parse_keys(
        jwks(
            jwk("RSA 1", use="enc"),
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "RSA", "kid": "broken", "n": "?"},
            {"kid": "nothing"},
            jwk("EC 1", use="sig", alg="ES256"),
        )
    )
    assert [(key.key_id, key.kind, key.algorithm) for key in found] == [("EC 1", "EC", "ES256")]
    assert "A key of a JWKS cannot be used (kid broken)" in caplog.text


def test_only_the_public_part_of_a_key_is_kept() -> None:
    private: Any = jwt.algorithms.RSAAlgorithm.to_jwk(private_key("RSA 1"))
    (key,) = parse_keys(jwks({**json.loads(private), "kid": "x"}))
    assert not hasattr(key.key, "private_numbers")
