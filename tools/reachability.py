"""Whether a broker can be reached: answered at once, with the reason if not.

librdkafka retries until its timeout and reports only that there was no answer; a person who
mistyped a port wants to know at once. Plain sockets; with TLS or SASL only connecting is tried.
"""

import os
import socket
from typing import Any

from config.environment import is_it_right
from tools.errors import CommandError
from tools.healthcheck import answers

CONNECT_S = 5.0
DEFAULT_PORT = 9092


def require_broker(settings: dict[str, Any]) -> None:
    """Raise CommandError with the reasons if none of `bootstrap.servers` can be reached."""
    reasons = []
    for server in str(settings["bootstrap.servers"]).split(","):
        reason = _unreachable(server.strip(), settings.get("security.protocol", "plaintext"))
        if reason is None:
            return
        reasons.append(reason)
    question = is_it_right(os.environ, settings["bootstrap.servers"])
    raise CommandError(f"{'; '.join(reasons)}. {question}")


def _unreachable(server: str, protocol: str) -> str | None:
    address = server.rpartition("://")[2]
    host, colon, port = address.rpartition(":")
    if not colon or not port:
        host, port = address.rstrip(":"), str(DEFAULT_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        return f"{server!r} is not of the form HOST:PORT"
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except socket.gaierror as error:
        return f"no machine is known as {host} ({error.strerror})"
    except OSError as error:
        return f"cannot connect to {host}:{port}: {error.strerror or error}"
    if protocol.lower() == "plaintext" and not answers(f"{host}:{port}", CONNECT_S):
        return f"what listens at {host}:{port} does not answer as a Kafka broker"
    return None
