"""The address of a broker for a client.

With `advertised.listeners` it is the endpoint of the listener that the client connected to.
Without, it is the address that the client itself connected to: that address works, so that
`listeners=PLAINTEXT://:0` needs no second setting. Metadata, DescribeCluster and FindCoordinator,
which name brokers, use it.
"""

from typing import NamedTuple

from broker.cluster.image import BrokerImage
from broker.request import ConnectionInfo

_MAPPED_IPV4 = "::ffff:"


class Endpoint(NamedTuple):
    """Host and port for a client."""

    host: str
    port: int


def endpoint_for(broker: BrokerImage, connection: ConnectionInfo) -> Endpoint | None:
    """The address of `broker` for a client of `connection`; None if it lacks that listener."""
    if not broker.endpoints:
        return Endpoint(_plain(connection.local_host), connection.local_port)
    for listener in broker.endpoints:
        if listener.name == connection.listener_name:
            return Endpoint(
                listener.host or _plain(connection.local_host),
                listener.port or connection.local_port,
            )
    return None


def _plain(host: str) -> str:
    """An IPv4 address that came through an IPv6 socket, as IPv4."""
    return host[len(_MAPPED_IPV4) :] if host.startswith(_MAPPED_IPV4) else host
