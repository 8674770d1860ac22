"""Ports for servers that tests stop and start again."""

import socket
from pathlib import Path
from random import Random
from typing import Final

FIRST: Final = 10_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_random = Random()  # Not the one of the module: tests seed that, and two workers chose the same.


def free_port() -> int:
    """Return a port that nobody listens on now, and that no connection of a client is given.

    The kernel takes the client's port of a connection from a range. A server's port of that range
    may be a client's while the server is down, and then the server cannot come back.
    """
    above = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    while True:
        port = _random.randrange(FIRST, max(above, FIRST + 1_000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
