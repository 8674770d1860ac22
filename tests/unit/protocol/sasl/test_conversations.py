"""The client's side of each mechanism, against the broker's side of it, and odd brokers."""

import base64

import pytest

from protocol.sasl import MalformedMessage
from protocol.sasl.conversations import Conversation, LoginError, bearer, plain, scram
from protocol.sasl.oauthbearer import CONFIRMED, build_refusal, parse_bearer
from protocol.sasl.plain import parse_plain
from protocol.sasl.scram import (
    ScramMechanism,
    new_credential,
    proof_is_right,
    server_signature,
)
from protocol.sasl.scram_messages import (
    auth_message,
    build_server_final,
    build_server_first,
    parse_client_final,
    parse_client_first,
)

SHA_256 = ScramMechanism.SHA_256


def zeros(bits: int) -> int:
    return 1 << (bits - 1)


def ended(conversation: Conversation, answer: bytes) -> None:
    with pytest.raises(StopIteration):
        conversation.send(answer)


def test_plain() -> None:
    conversation = plain("alice", "secret")
    assert parse_plain(next(conversation)) == ("", "alice", "secret")
    ended(conversation, b"")


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_scram(mechanism: ScramMechanism) -> None:
    credential = new_credential(mechanism, "pass,=word", b"salt", 4096)
    conversation = scram(mechanism, "al=i,ce", "pass,=word", zeros)
    first = parse_client_first(next(conversation))
    assert first.user == "al=i,ce"
    server = build_server_first(first, "more", b"salt", 4096)
    final = parse_client_final(conversation.send(server.text.encode()))
    signed = auth_message(first, server, final.unproved)
    assert proof_is_right(mechanism, credential, signed, final.proof)
    signature = server_signature(mechanism, credential.server_key, signed)
    ended(conversation, build_server_final(signature))


def in_the_middle(iterations: int = 4096) -> Conversation:
    conversation = scram(SHA_256, "alice", "secret", zeros)
    first = parse_client_first(next(conversation))
    server = build_server_first(first, "more", b"salt", iterations)
    conversation.send(server.text.encode())
    return conversation


def test_a_broker_that_does_not_know_the_password_is_told() -> None:
    with pytest.raises(LoginError, match="does not know the user's password"):
        in_the_middle().send(build_server_final(bytes(32)))


def test_a_broker_that_ends_before_its_proof_is_no_broker() -> None:
    with pytest.raises(MalformedMessage):
        in_the_middle().send(b"")


@pytest.mark.parametrize("iterations", [1, 4095, 1_000_001])
def test_hashing_is_neither_too_weak_nor_too_long(iterations: int) -> None:
    with pytest.raises(LoginError, match=f"asks for {iterations} iterations"):
        in_the_middle(iterations)


def test_a_nonce_of_somebody_else_is_refused() -> None:
    conversation = scram(SHA_256, "alice", "secret", zeros)
    next(conversation)
    salt = base64.b64encode(b"salt").decode()
    with pytest.raises(MalformedMessage, match="nonce"):
        conversation.send(f"r=other,s={salt},i=4096".encode())


def test_bearer() -> None:
    conversation = bearer("a.b.c", {"cluster": "one"})
    message = parse_bearer(next(conversation))
    assert (message.token, message.extensions) == ("a.b.c", {"cluster": "one"})
    ended(conversation, b"")


def test_a_token_that_is_not_accepted_is_confirmed_and_told() -> None:
    conversation = bearer("a.b.c", {})
    next(conversation)
    assert conversation.send(build_refusal("invalid_token")) == CONFIRMED
    with pytest.raises(LoginError, match="not accept the token: invalid_token"):
        conversation.send(b"")
