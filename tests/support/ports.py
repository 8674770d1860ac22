"""Ports for servers that tests stop and start again."""

import os
import socket
from collections import deque
from pathlib import Path
from random import Random
from typing import Final

FIRST: Final = 10_000
WORKERS: Final = 8
"""Workers of pytest with ports of their own: between the choice of a port and the start of its
server, no other worker may choose it."""
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_random = Random()  # Not the one of the module: tests seed that, and two workers chose the same.
_recent: deque[int] = deque(maxlen=100)


def free_port() -> int:
    """Return a port that nobody listens on now, and that no connection of a client is given.

    The kernel takes the client's port of a connection from a range. A server's port of that range
    may be a client's while the server is down, and then the server cannot come back.
    """
    above = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = _random.randrange(FIRST + worker % WORKERS, max(above, FIRST + 10_000), WORKERS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _recent:
            _recent.append(port)
            return port
