"""Whether a broker can be reached: answered at once, with the reason if not.

librdkafka retries until its timeout and reports only that there was no answer; a person who
mistyped a port, or a password, wants to know at once. With SASL this logs in, if commands have the
mechanism themselves. Without SASL it asks a broker for the mechanisms that this offers, because a
broker that wants a login answers nothing else.
"""

import os
import socket
import struct
from typing import Any, Final

from config.environment import is_it_right
from tools.client_properties import ENCRYPTED, mechanism_of, protocol_of
from tools.dialing import dial_plainly, dialer, reason_of
from tools.errors import CommandError, LoginRefused
from tools.healthcheck import asks_versions, speaks_tls

CONNECT_S = 5.0
DEFAULT_PORT = 9092

_CORRELATION: Final = 2
_SHAKE: Final = struct.pack(">ihhihh", 12, 17, 1, _CORRELATION, -1, 0)
"""SaslHandshake 1 for a mechanism without a name, which no broker has."""
_UNKNOWN_MECHANISM: Final = 33
_LONGEST_ANSWER: Final = 4096
_SPEAKS_TLS: Final = "speaks TLS: security.protocol={} (-X, or --command-config)"


def require_broker(settings: dict[str, Any]) -> None:
    """Raise CommandError with the reasons if none of `bootstrap.servers` can be reached.

    The first that refuses the login is reason enough.
    """
    reasons = []
    for server in str(settings["bootstrap.servers"]).split(","):
        reason = _unreachable(server.strip(), settings)
        if reason is None:
            return
        reasons.append(reason)
    question = is_it_right(os.environ, settings["bootstrap.servers"])
    raise CommandError(f"{'; '.join(reasons)}. {question}")


def _unreachable(server: str, settings: dict[str, Any]) -> str | None:
    address = server.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or not port:
        host, port = address.rstrip(":"), str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        return f"{server!r} is not of the form HOST:PORT"
    place = (host.strip("[]"), int(port))
    try:
        dial_plainly(place, CONNECT_S).close()
    except socket.gaierror as error:
        return f"no machine is known as {host} ({error.strerror})"
    except OSError as error:
        return f"cannot connect to {host}:{port}: {error.strerror or error}"
    protocol = protocol_of(settings)
    if protocol.startswith("sasl_"):
        return _not_logged_in(place, settings)
    dial = dialer(settings)
    try:
        with dial(place, CONNECT_S) as connection:
            if asks_versions(connection):
                _refuse_without_login(connection, f"{host}:{port}", protocol)
                return None
    except OSError as error:
        if protocol in ENCRYPTED:
            return f"{host}:{port}: {reason_of(error)}"
    hint = (
        ""
        if protocol in ENCRYPTED or not speaks_tls(place, CONNECT_S)
        else f", but {_SPEAKS_TLS.format('SSL, or SASL_SSL')}"
    )
    return f"what listens at {host}:{port} does not answer as a Kafka broker{hint}"


def _refuse_without_login(connection: socket.socket, broker: str, protocol: str) -> None:
    """Raise LoginRefused if a broker wants a login on this connection, which is without SASL."""
    try:
        connection.sendall(_SHAKE)
        answer = connection.recv(_LONGEST_ANSWER)
        _size, correlation, code, count = struct.unpack_from(">iihi", answer)
        if (correlation, code) != (_CORRELATION, _UNKNOWN_MECHANISM):
            return
        offered, at = [], 14
        for _ in range(count):
            (length,) = struct.unpack_from(">h", answer, at)
            offered.append(answer[at + 2 : at + 2 + length].decode())
            at += 2 + length
    except (OSError, struct.error, UnicodeDecodeError):
        return  # a broker before SASL
    wanted = "SASL_SSL" if protocol in ENCRYPTED else "SASL_PLAINTEXT"
    raise LoginRefused(
        f"{broker} asks who you are: security.protocol={wanted}, sasl.mechanism (it offers"
        f" {', '.join(offered)}), sasl.username and sasl.password (-X, or --command-config)"
    )


def _not_logged_in(place: tuple[str, int], settings: dict[str, Any]) -> str | None:
    """Why a broker cannot be reached. Raises LoginRefused, and CommandError for bad settings."""
    from tools.link import linker
    from tools.login.session import OWN

    if mechanism_of(settings) not in OWN:
        return None  # librdkafka may have it
    link = linker(settings)
    try:
        link(place).close()
    except LoginRefused:
        raise
    except CommandError as error:
        if protocol_of(settings) in ENCRYPTED or not speaks_tls(place, CONNECT_S):
            return str(error)
        return f"{place[0]}:{place[1]} {_SPEAKS_TLS.format('SASL_SSL')}"
    return None
