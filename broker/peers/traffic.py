"""What goes over the connections to one broker for one purpose, as metrics read it."""

from dataclasses import dataclass


@dataclass(slots=True)
class PeerTraffic:
    """Counters since the start of this broker; the login and TLS are not in the bytes."""

    connected: int = 0
    """Connections that are open now."""
    connections: int = 0
    """Connections that were made."""
    requests: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
