"""The client's side of each mechanism, as a generator: it yields messages and gets answers.

It returns when the client has said all and the broker has proved what it has to. Raises
`MalformedMessage` for an answer that is none, and LoginError. Pure but for the nonce; a step of
SCRAM hashes for milliseconds.
"""

from collections.abc import Callable, Generator, Mapping
from hmac import compare_digest
from typing import Final

from protocol.sasl.oauthbearer import CONFIRMED, build_bearer, parse_refusal
from protocol.sasl.plain import build_plain
from protocol.sasl.scram import (
    MIN_ITERATIONS,
    ScramMechanism,
    random_text,
    salted_password,
    server_key_of,
    server_signature,
)
from protocol.sasl.scram_messages import (
    build_client_final,
    build_client_first,
    parse_server_final,
    parse_server_first,
)

Conversation = Generator[bytes, bytes, None]

_MOST_ITERATIONS: Final = 1_000_000
"""Hashing more than that would take seconds: no broker asks for it."""


class LoginError(Exception):
    """The broker does not let the client in, or is not what it should be."""


def plain(user: str, password: str) -> Conversation:
    """PLAIN."""
    yield build_plain(user, password)


def scram(
    mechanism: ScramMechanism, user: str, password: str, random_bits: Callable[[int], int]
) -> Conversation:
    """SCRAM-SHA-256 or -512."""
    first = build_client_first(user, random_text(random_bits))
    server = parse_server_first((yield first.data), first)
    if not MIN_ITERATIONS <= server.iterations <= _MOST_ITERATIONS:
        raise LoginError(f"it asks for {server.iterations} iterations")
    salted = salted_password(mechanism, password, server.salt, server.iterations)
    message, signed = build_client_final(mechanism, first, server, salted)
    signature = parse_server_final((yield message))
    known = server_signature(mechanism, server_key_of(mechanism, salted), signed)
    if not compare_digest(signature, known):
        raise LoginError("it does not know the user's password itself. Is it the right broker?")


def bearer(token: str, extensions: Mapping[str, str]) -> Conversation:
    """OAUTHBEARER."""
    answer = yield build_bearer(token, extensions)
    if answer:
        yield CONFIRMED  # and then the broker refuses
        raise LoginError(f"it does not accept the token: {parse_refusal(answer)}")
