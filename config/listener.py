"""The endpoints at which the broker listens, and those that it advertises: `listeners`,
`advertised.listeners`.

Rules and error messages are those of Kafka's `SocketServerConfigs.listenerListToEndPoints` and
`CoreUtils`. A host may be empty (all interfaces), a name, an IPv4 address or an IPv6 address in
brackets, with a zone (`[fe80::1%eth0]`) or without. Port 0 lets the system choose.
"""

import re
from dataclasses import dataclass

from config.definition import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ENCRYPTED = frozenset(("SSL", "SASL_SSL"))

_ENDPOINT = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)\Z")
_BRACKETED = re.compile(r"[^:/]+://\[[0-9a-zA-Z\-%._:]+\]:")
_LINK_LOCAL = re.compile("fe[89ab]", re.IGNORECASE)
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One endpoint. `host` is empty for all interfaces; an IPv6 address has no brackets."""

    name: str
    """The name in upper case, as Kafka normalizes listener names."""
    host: str
    port: int
    protocol: str
    """The security protocol that the name is mapped to."""

    @property
    def is_encrypted(self) -> bool:
        """Whether clients speak TLS here."""
        return self.protocol in ENCRYPTED

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def resolvable(host: str) -> str:
    """Return `host` as the system's resolver takes it.

    glibc refuses a zone of an address that needs none (`::1%lo`); Java, and so Kafka, takes it.
    """
    return host if _LINK_LOCAL.match(host) else host.partition("%")[0]


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse `listener.security.protocol.map`: upper-case listener name to security protocol.

    Raises ConfigError.
    """
    result: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in entry.rpartition(":"))
        if not colon or not name or protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError.invalid(
                "listener.security.protocol.map",
                text,
                f"entries are LISTENER_NAME:PROTOCOL with one of {', '.join(SECURITY_PROTOCOLS)}; "
                f"found {entry}",
            )
        result[name.upper()] = protocol.upper()
    return result


def parse_endpoint(key: str, text: str, protocols: dict[str, str]) -> Listener:
    """Parse one `NAME://host:port`. Raises ConfigError."""
    found = _ENDPOINT.match(text)
    if found is None or (":" in found[2] and not _BRACKETED.match(text)):
        raise ConfigError.invalid(key, text, f"Unable to parse {text} to a broker endpoint")
    name, port = found[1].upper(), int(found[3])
    if not 0 <= port <= _MAX_PORT:
        raise ConfigError.invalid(key, text, f"Port {port} is outside 0 to {_MAX_PORT}")
    if name not in protocols:
        raise ConfigError(
            f"Error creating broker listeners from '{text}': "
            f"No security protocol defined for listener {name}{_about(name)}"
        )
    return Listener(name=name, host=found[2], port=port, protocol=protocols[name])


def _about(name: str) -> str:
    """The end of the message about a name without a protocol: its likely cause."""
    if "CONTROLLER" in name:
        return (
            ". A KRaft controller's listener is named in controller.listener.names, and not opened"
            " here: name it there, or take it out of listeners"
        )
    return f"; listener.security.protocol.map gives it one: {name}:PLAINTEXT"


def parse_listeners(
    key: str, texts: tuple[str, ...], protocols: dict[str, str], *, same_port: bool = False
) -> tuple[Listener, ...]:
    """Parse a list of endpoints. Raises ConfigError if two have the same name or port.

    Ports may be equal if `same_port`, if they are 0, or for one IPv4 and one IPv6 host.
    """
    listeners = tuple(parse_endpoint(key, text, protocols) for text in texts)
    if len({listener.name for listener in listeners}) != len(listeners):
        raise ConfigError(f"Each listener must have a different name, {key}: {','.join(texts)}")
    if not same_port:
        by_port: dict[int, list[Listener]] = {}
        for listener in listeners:
            if listener.port:
                by_port.setdefault(listener.port, []).append(listener)
        for group in by_port.values():
            families = [":" in listener.host for listener in group]
            if len(set(families)) != len(families):
                raise ConfigError(
                    "Each listener must have a different port unless exactly one listener has an "
                    f"IPv4 address and the other IPv6 address, {key}: {','.join(texts)}"
                )
    return listeners
