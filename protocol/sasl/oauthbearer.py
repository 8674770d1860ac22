"""OAUTHBEARER: a bearer token in one message (RFC 7628), as Kafka's
`OAuthBearerClientInitialResponse` reads it.

    n,[a=authorization id],^Aauth=Bearer token^A[key=value^A]^A       ^A is the byte 1

A token that is not accepted is answered with a JSON object; the client confirms that with ^A, and
then the exchange has failed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protocol.sasl import MalformedMessage

CONFIRMED: Final = b"\x01"
"""The client's message after the broker has given the reason why it refuses the token."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS: Final = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_MESSAGE: Final = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+)[ ]+(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerMessage:
    """The client's message. The token is not shown."""

    token: str
    authorization_id: str
    """The user that the client wants to act as; empty: the token's user."""
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"BearerMessage(authorization_id={self.authorization_id!r})"


def parse_bearer(data: bytes) -> BearerMessage:
    """Parse the client's message. Raises MalformedMessage."""
    found = _MESSAGE.fullmatch(data.decode("utf-8", "replace"))
    if found is None:
        raise MalformedMessage("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in found["pairs"].split("\x01") if pair)
    auth = pairs.pop("auth", None)
    if auth is None:
        raise MalformedMessage("Invalid OAUTHBEARER client first message: 'auth' not specified")
    bearer = _AUTH.fullmatch(auth)
    if bearer is None:
        raise MalformedMessage("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if bearer["scheme"].lower() != "bearer":
        raise MalformedMessage("Invalid scheme in OAUTHBEARER client first message")
    return BearerMessage(
        token=bearer["token"], authorization_id=found["authzid"] or "", extensions=pairs
    )


def build_bearer(token: str, extensions: Mapping[str, str] | None = None) -> bytes:
    """Build the client's message."""
    more = "".join(f"{key}={value}\x01" for key, value in (extensions or {}).items())
    return f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()


def build_refusal(status: str, scope: str | None = None) -> bytes:
    """Build the answer to a token that is not accepted, as Kafka writes it."""
    told = f'{{"status":{json.dumps(status)}'
    if scope is not None:
        told += f', "scope":{json.dumps(scope)}'
    return (told + "}").encode()


def parse_refusal(data: bytes) -> str:
    """Return the reason in the answer to a token that is not accepted; empty if there is none."""
    try:
        told = json.loads(data)
    except ValueError:
        return ""
    status = told.get("status", "") if isinstance(told, dict) else ""
    return str(status)
