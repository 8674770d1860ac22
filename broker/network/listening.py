"""Listening sockets: what `listeners` means for the operating system.

An empty host means every interface, IPv6 and IPv4 through one socket where the machine has both
(as Java does). A name is resolved, IPv4 before IPv6. Port 0 lets the system choose.
"""

import contextlib
import socket
from dataclasses import dataclass

from config.listener import Listener

SYSTEM_DEFAULT = -1
"""`socket.send.buffer.bytes` and its twin: leave the size to the operating system."""
_MAPPED = "::ffff:"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A listener and where it really listens."""

    name: str
    host: str
    """As configured; 0.0.0.0 for every interface."""
    port: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class BindError(Exception):
    """A listener's address cannot be used; the message is for the operator."""


def bind_listener(
    listener: Listener, *, backlog: int, receive_buffer: int
) -> tuple[BoundListener, socket.socket]:
    """Bind and listen; connections wait in the backlog until somebody accepts.

    `receive_buffer` must be set before listening to matter for the window; -1 leaves the system's
    automatic tuning in charge. Raises BindError.
    """
    reasons = []
    for family, address in _addresses(listener):
        try:
            sock = _listen(family, address, backlog, receive_buffer)
        except OSError as error:
            reasons.append(str(error))
            continue
        bound = BoundListener(
            name=listener.name,
            host=listener.host or "0.0.0.0",
            port=sock.getsockname()[1],
            protocol=listener.protocol,
        )
        return bound, sock
    raise BindError(
        f"Socket server failed to bind to {listener.host or '0.0.0.0'}:{listener.port}: "
        f"{'; '.join(dict.fromkeys(reasons))}."
    )


def host_of(address: tuple[str, int] | tuple[str, int, int, int]) -> str:
    """The host of a socket address; an IPv4 peer of an IPv6 socket reads as IPv4."""
    host = address[0]
    return host[len(_MAPPED) :] if host.startswith(_MAPPED) and "." in host else host


def _addresses(listener: Listener) -> list[tuple[int, tuple[str, int]]]:
    if not listener.host:
        return [(socket.AF_INET6, ("::", listener.port)), (socket.AF_INET, ("", listener.port))]
    try:
        found = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise BindError(f"Cannot resolve the host of listener {listener}: {error}") from error
    ordered = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)
    return [(family, (str(address[0]), listener.port)) for family, _, _, _, address in ordered]


def _listen(
    family: int, address: tuple[str, int], backlog: int, receive_buffer: int
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            both = address[0] == "::"
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        if receive_buffer != SYSTEM_DEFAULT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def prepare_connection(sock: socket.socket, *, send_buffer: int) -> None:
    """Options of an accepted connection. Errors mean that the peer has gone already."""
    sock.setblocking(False)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_buffer != SYSTEM_DEFAULT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
