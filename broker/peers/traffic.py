"""The traffic of the connections to one broker for one purpose, for metrics."""

from dataclasses import dataclass


@dataclass(slots=True)
class PeerTraffic:
    """Counters since the start of this broker; the bytes are those without the login and TLS."""

    connected: int = 0
    """Connections that are open now."""
    connections: int = 0
    """Connections that were made."""
    requests: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
