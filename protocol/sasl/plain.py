"""PLAIN: user and password in one message (RFC 4616), with the errors of Kafka's `PlainSaslServer`.

[authorization id] NUL user NUL password
"""

from typing import NamedTuple

from protocol.sasl import LONGEST, MalformedMessage


class PlainMessage(NamedTuple):
    """The client's message."""

    authorization_id: str
    """The user that the client wants to act as; empty: `user`."""
    user: str
    password: str

    def __repr__(self) -> str:
        return f"PlainMessage(user={self.user!r})"


def parse_plain(data: bytes) -> PlainMessage:
    """Parse the client's message. Raises MalformedMessage."""
    if len(data) > LONGEST:
        raise MalformedMessage(f"Invalid SASL/PLAIN response: {len(data)} bytes are too long")
    parts = data.decode("utf-8", "replace").split("\0", 3)
    if len(parts) != 3:
        raise MalformedMessage(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
    message = PlainMessage(*parts)
    if not message.user:
        raise MalformedMessage("Authentication failed: username not specified")
    if not message.password:
        raise MalformedMessage("Authentication failed: password not specified")
    return message


def build_plain(user: str, password: str) -> bytes:
    """Build the client's message."""
    return f"\0{user}\0{password}".encode()
