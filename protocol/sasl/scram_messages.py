"""The four messages of a SCRAM exchange (RFC 5802, section 7), as far as Kafka's clients use them.

    client first   n,[a=authorization id],n=name,r=nonce[,extensions]
    server first   r=nonce nonce,s=salt,i=iterations
    client final   c=channel binding,r=nonce nonce[,extensions],p=proof
    server final   v=signature

There is no channel binding: what begins with `y` or `p` is refused, and so are mandatory extensions
(`m=`). The channel binding of the last message must be the header of the first (`n,...,`), which a
man in the middle cannot change. Signed is what was sent, to the byte.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from protocol.sasl import LONGEST, MalformedMessage
from protocol.sasl.scram import ScramMechanism, client_proof

TOKEN_AUTH: Final = "tokenauth"
"""The extension of Kafka's by which a client says that it has a delegation token (KIP-48)."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST: Final = re.compile(
    rf"r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64}))")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFirst:
    """The client's first message."""

    header: str
    """The text that the last message must repeat as its channel binding."""
    authorization_id: str
    """The user that the client wants to act as; empty: `user`."""
    user: str
    nonce: str
    extensions: Mapping[str, str]
    bare: str
    """The part that is signed."""

    @property
    def data(self) -> bytes:
        """The whole message."""
        return (self.header + self.bare).encode()

    @property
    def by_token(self) -> bool:
        """Whether the user's name is the id of a delegation token."""
        return self.extensions.get(TOKEN_AUTH, "").lower() == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFirst:
    """The server's first message."""

    nonce: str
    salt: bytes
    iterations: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFinal:
    """The client's last message."""

    binding: str
    nonce: str
    proof: bytes
    unproved: str
    """The part that is signed."""


def _matched(pattern: re.Pattern[str], data: bytes, what: str) -> re.Match[str]:
    found = pattern.fullmatch(data.decode("utf-8", "replace")) if len(data) <= LONGEST else None
    if found is None:
        raise MalformedMessage(f"Invalid SCRAM {what} message format")
    return found


def parse_client_first(data: bytes) -> ClientFirst:
    """Parse the client's first message. Raises MalformedMessage."""
    found = _matched(_CLIENT_FIRST, data, "client first")
    extensions = (one.partition("=") for one in found["extensions"].split(",")[1:])
    return ClientFirst(
        header=found["header"],
        authorization_id=found["authzid"] or "",
        user=_user(found["name"]),
        nonce=found["nonce"],
        extensions={name: value for name, _, value in extensions},
        bare=found["bare"],
    )


def build_client_first(user: str, nonce: str, *, by_token: bool = False) -> ClientFirst:
    """Build the client's first message: `header` and `bare` together."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    extensions = {TOKEN_AUTH: "true"} if by_token else {}
    bare = f"n={name},r={nonce}" + "".join(f",{key}={value}" for key, value in extensions.items())
    return ClientFirst(
        header="n,,", authorization_id="", user=user, nonce=nonce, extensions=extensions, bare=bare
    )


def _user(name: str) -> str:
    """The user of a SASL name, in which comma and equals sign are escaped."""
    return name.replace("=2C", ",").replace("=3D", "=")


def build_server_first(
    client: ClientFirst, nonce: str, salt: bytes, iterations: int
) -> ServerFirst:
    """Build the server's first message; `nonce` is its own part."""
    both = client.nonce + nonce
    text = f"r={both},s={base64.b64encode(salt).decode()},i={iterations}"
    return ServerFirst(nonce=both, salt=salt, iterations=iterations, text=text)


def parse_server_first(data: bytes, client: ClientFirst) -> ServerFirst:
    """Parse the server's first message. Raises MalformedMessage, also for a nonce of others."""
    found = _matched(_SERVER_FIRST, data, "server first")
    if not found["nonce"].startswith(client.nonce) or found["nonce"] == client.nonce:
        raise MalformedMessage("Invalid server nonce: does not start with client nonce")
    return ServerFirst(
        nonce=found["nonce"],
        salt=base64.b64decode(found["salt"]),
        iterations=int(found["iterations"]),
        text=found[0],
    )


def auth_message(client: ClientFirst, server: ServerFirst, unproved: str) -> bytes:
    """AuthMessage: what both sides sign."""
    return f"{client.bare},{server.text},{unproved}".encode()


def parse_client_final(data: bytes) -> ClientFinal:
    """Parse the client's last message. Raises MalformedMessage."""
    found = _matched(_CLIENT_FINAL, data, "client final")
    return ClientFinal(
        binding=found["binding"],
        nonce=found["nonce"],
        proof=base64.b64decode(found["proof"]),
        unproved=found["unproved"],
    )


def binding_of(client: ClientFirst) -> str:
    """The channel binding that the last message must have."""
    return base64.b64encode(client.header.encode()).decode()


def build_client_final(
    mechanism: ScramMechanism, client: ClientFirst, server: ServerFirst, salted: bytes
) -> tuple[bytes, bytes]:
    """Build the client's last message; return (message, AuthMessage)."""
    unproved = f"c={binding_of(client)},r={server.nonce}"
    signed = auth_message(client, server, unproved)
    proof = base64.b64encode(client_proof(mechanism, salted, signed)).decode()
    return f"{unproved},p={proof}".encode(), signed


def build_server_final(signature: bytes) -> bytes:
    """Build the server's last message."""
    return b"v=" + base64.b64encode(signature)


def parse_server_final(data: bytes) -> bytes:
    """Return the signature in the server's last message. Raises MalformedMessage."""
    found = _matched(_SERVER_FINAL, data, "server final")
    if found["error"]:
        raise MalformedMessage(f"the server refused: {found['error']}")
    return base64.b64decode(found["signature"])
