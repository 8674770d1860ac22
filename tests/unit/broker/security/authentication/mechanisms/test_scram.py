import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from broker.cluster.user_configs import change_user_configs
from broker.security.authentication.mechanism import Exchange
from broker.security.authentication.mechanisms import scram
from broker.security.authentication.mechanisms.scram import ScramServer
from broker.security.authentication.outcomes import AuthenticatedUser, Progress, RefusedError
from broker.security.scram_credentials import ScramCredentials
from protocol.sasl.scram import (
    ScramCredential,
    ScramMechanism,
    client_proof,
    new_credential,
    salted_password,
    text_of_credential,
)
from protocol.sasl.scram_messages import auth_message, build_client_first, parse_server_first
from storage.waits import at_once
from tests.support.sasl import scram_messages
from tests.support.stores import open_store

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
TOKEN = AuthenticatedUser("owner", by_token=True, expires_ms=1)


class Tokens:
    """One delegation token, `t`, with the password `secret`."""

    def __init__(self) -> None:
        self._made = {
            mechanism: new_credential(mechanism, "secret", b"salt", 4096)
            for mechanism in ScramMechanism
        }

    async def authenticating(
        self, mechanism: ScramMechanism, token_id: str
    ) -> tuple[ScramCredential, AuthenticatedUser] | None:
        if token_id != "t":
            return None
        return self._made[mechanism], TOKEN


async def _users() -> ScramCredentials:
    store = await open_store()
    few = ScramCredential(b"salt", b"s" * 32, b"s" * 32, 4095)
    for user, mechanism, credential in (
        ("alice", SHA_256, new_credential(SHA_256, "pencil", b"a-salt", 4096)),
        ("alice", SHA_512, new_credential(SHA_512, "pencil", b"a-salt", 8192)),
        ("bob", SHA_256, new_credential(SHA_256, "crayon", b"b-salt", 4096)),
        ("a,b=c", SHA_256, new_credential(SHA_256, "pencil", b"c-salt", 4096)),
        ("few", SHA_256, few),
    ):
        text = text_of_credential(credential)
        name = mechanism.value
        await change_user_configs(store, {user: lambda old, n=name, t=text: {**old, n: t}})
    users = ScramCredentials(store)
    await users.load(Random(1).getrandbits)
    return users


@pytest.fixture
def offered() -> Callable[[ScramMechanism], ScramServer]:
    users, random = at_once(_users()), Random(2)
    return lambda mechanism: ScramServer(mechanism, 0, users, Tokens(), random.getrandbits)


Offered = Callable[[ScramMechanism], ScramServer]


def talk(exchange: Exchange, client: Iterator[bytes]) -> AuthenticatedUser:
    """Let a client talk to its end. Raises RefusedError."""
    progress = at_once(exchange.evaluate(next(client)))
    assert progress.identity is None
    final: bytes = client.send(progress.message)  # type: ignore[attr-defined]
    progress = at_once(exchange.evaluate(final))
    with pytest.raises(StopIteration):
        client.send(progress.message)  # type: ignore[attr-defined]
    assert progress.identity is not None
    return progress.identity


def refused(exchange: Exchange, client: Iterator[bytes]) -> None:
    """A client is refused, and learns nothing."""
    with pytest.raises(RefusedError) as caught:
        talk(exchange, client)
    assert caught.value.told is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_client_proves_its_password_and_the_server_that_it_knows_it(
    offered: Offered, mechanism: ScramMechanism
) -> None:
    client = scram_messages(mechanism, "alice", "pencil")
    assert talk(offered(mechanism).begin(), client) == AuthenticatedUser("alice")


def test_names_are_escaped(offered: Offered) -> None:
    client = scram_messages(SHA_256, "a,b=c", "pencil")
    assert talk(offered(SHA_256).begin(), client) == AuthenticatedUser("a,b=c")


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("alice", "wrong", SHA_256),
        ("nobody", "pencil", SHA_256),
        ("bob", "crayon", SHA_512),  # who has a credential for the other mechanism only
        ("t", "secret", SHA_256),  # a token, not said to be one
    ],
)
def test_s_sec_3_whoever_is_refused_is_refused_after_the_proof(
    offered: Offered, user: str, password: str, mechanism: ScramMechanism
) -> None:
    refused(offered(mechanism).begin(), scram_messages(mechanism, user, password))


@pytest.mark.parametrize("by_token", [False, True])
def test_s_sec_3_an_unknown_user_costs_the_work_of_a_wrong_password(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, by_token: bool
) -> None:
    server = offered(SHA_256)

    def hashes(evaluate: Callable[[], object]) -> int:
        """How many hashes and HMACs the server makes."""
        made: list[str] = []

        def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *values: (made.append(name), function(*values))[1]

        with monkeypatch.context() as patch:
            for module, name in ((hmac, "digest"), (hashlib, "new")):
                patch.setattr(module, name, counted(name, getattr(module, name)))
            evaluate()
        return len(made)

    def work_for(user: str) -> tuple[int, int]:
        """The server's hashes for each of the two messages of a client."""
        client = scram_messages(SHA_256, user, "wrong", by_token=by_token)
        exchange, opening = server.begin(), next(client)
        answers: list[bytes] = []
        first = hashes(lambda: answers.append(at_once(exchange.evaluate(opening)).message))
        final: bytes = client.send(answers[0])  # type: ignore[attr-defined]

        def refuse() -> None:
            with pytest.raises(RefusedError):
                at_once(exchange.evaluate(final))

        return first, hashes(refuse)

    known = work_for("t" if by_token else "alice")
    assert known == work_for("nobody")
    assert known[0] > 0
    assert known[1] == 3


def test_s_sec_3_what_an_unknown_user_is_told_looks_like_what_a_known_one_is(
    offered: Offered,
) -> None:
    server = offered(SHA_256)

    def told(user: bytes) -> tuple[str, str]:
        progress = at_once(server.begin().evaluate(b"n,,n=" + user + b",r=abc"))
        nonce, salt, iterations = progress.message.decode().split(",")
        assert nonce.startswith("r=abc")
        return salt, iterations

    assert told(b"nobody") == told(b"nobody")
    assert told(b"nobody")[0] != told(b"nobody2")[0]
    assert told(b"nobody")[1] == told(b"alice")[1] == "i=4096"


def test_a_delegation_token_authenticates_its_owner(offered: Offered) -> None:
    for mechanism in ScramMechanism:
        client = scram_messages(mechanism, "t", "secret", by_token=True)
        assert talk(offered(mechanism).begin(), client) == TOKEN


@pytest.mark.parametrize(
    ("token_id", "password"), [("t", "wrong"), ("x", "secret"), ("alice", "pencil")]
)
def test_an_unknown_token_or_a_users_name_is_none(
    offered: Offered, token_id: str, password: str
) -> None:
    client = scram_messages(SHA_256, token_id, password, by_token=True)
    refused(offered(SHA_256).begin(), client)


def test_a_recorded_message_proves_nothing_in_another_exchange(offered: Offered) -> None:
    server = offered(SHA_256)
    recorded: list[bytes] = []

    def record(message: bytes) -> bytes:
        recorded.append(message)
        return message

    first = b"n,,n=alice,r=same"
    client = scram_messages(SHA_256, "alice", "pencil", change=record)
    opening = next(client)
    exchange = server.begin()
    answer = at_once(exchange.evaluate(opening)).message
    client.send(answer)  # type: ignore[attr-defined]
    assert at_once(exchange.evaluate(recorded[0])).identity == AuthenticatedUser("alice")
    replay = server.begin()
    at_once(replay.evaluate(opening))
    with pytest.raises(RefusedError):
        at_once(replay.evaluate(recorded[0]))
    nonces = {at_once(server.begin().evaluate(first)).message.split(b",")[0] for _ in range(50)}
    assert len(nonces) == 50


@pytest.mark.parametrize(
    "change",
    [
        lambda message: b"",
        lambda message: b"x",
        lambda message: message.replace(b"r=", b"r=x", 1),
        lambda message: message.replace(b"c=biws", b"c=eSws"),  # a header of a downgrade: y,,
        lambda message: message.replace(b"c=biws", b"c="),
        lambda message: message[:-8] + b"AAAAAAA=",
        lambda message: message.split(b",p=")[0] + b",p=",
        lambda message: message.split(b",p=")[0],
    ],
)
def test_a_changed_last_message_is_refused(
    offered: Offered, change: Callable[[bytes], bytes]
) -> None:
    client = scram_messages(SHA_256, "alice", "pencil", change=change)
    refused(offered(SHA_256).begin(), client)


@pytest.mark.parametrize(
    ("header", "more", "why"),
    [(b"y,,", "", "channel binding"), (b"n,,", "x", "client nonce"), (b"n,,", "ü", "format")],
)
def test_header_and_nonce_are_bound_even_if_others_are_signed(
    offered: Offered, header: bytes, more: str, why: str
) -> None:
    """A client that believes that it offered channel binding has been lied to."""
    exchange = offered(SHA_256).begin()
    first = build_client_first("alice", "abc")
    answer = parse_server_first(at_once(exchange.evaluate(first.data)).message, first)
    unproved = f"c={base64.b64encode(header).decode()},r={answer.nonce}{more}"
    salted = salted_password(SHA_256, "pencil", answer.salt, answer.iterations)
    proof = client_proof(SHA_256, salted, auth_message(first, answer, unproved))
    final = f"{unproved},p={base64.b64encode(proof).decode()}".encode()
    with pytest.raises(RefusedError, match=why):
        at_once(exchange.evaluate(final))


def test_an_unknown_user_is_refused_even_with_the_password_of_the_stand_in(
    offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = new_credential(SHA_256, "guessed", b"salt", 4096)
    monkeypatch.setattr(ScramCredentials, "stand_in", lambda *_, **__: known)
    refused(offered(SHA_256).begin(), scram_messages(SHA_256, "nobody", "guessed"))


@pytest.mark.parametrize("message", [b"", b"y,,n=alice,r=x", b"n,,n=few,r=x", b"n,,m=1,n=a,r=x"])
def test_what_cannot_be_answered_is_refused_without_a_word(
    offered: Offered, message: bytes
) -> None:
    with pytest.raises(RefusedError) as caught:
        at_once(offered(SHA_256).begin().evaluate(message))
    assert caught.value.told is None


def test_nobody_acts_as_somebody_else(offered: Offered) -> None:
    for user in (b"alice", b"nobody"):
        with pytest.raises(RefusedError) as caught:
            at_once(offered(SHA_256).begin().evaluate(b"n,a=bob,n=" + user + b",r=x"))
        assert caught.value.told == scram._OTHER_ID
    first = at_once(offered(SHA_256).begin().evaluate(b"n,a=alice,n=alice,r=x"))
    assert first.identity is None
    assert isinstance(first, Progress)
