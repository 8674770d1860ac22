"""The addresses of the hosts that `max.connections.per.ip.overrides` names.

Connections come from addresses, so a name is looked up when its limit is set, and not again:
Kafka's `ConnectionQuotas` does so with `InetAddress.getByName`.
"""

from collections.abc import Callable
from typing import Final

from broker.world.addresses import normalized
from config.broker_config import BrokerConfig
from config.definition import ConfigError
from storage.waits import call

_KEY: Final = "max.connections.per.ip.overrides"

Resolve = Callable[[str], str]
"""Returns the first address of a host; may block. Raises OSError with the reason."""


def as_written(host: str) -> str:
    """Resolve nothing: a host is its address."""
    return host


async def located(config: BrokerConfig, resolve: Resolve) -> BrokerConfig:
    """Return the configuration with its limits of hosts by address, `normalized`.

    If two hosts have one address, the later limit holds. Raises ConfigError for a host that has
    none.
    """
    if not config.ip_connection_limits:
        return config
    return config.with_ip_connection_limits(await call(_by_address, config, resolve))


def _by_address(config: BrokerConfig, resolve: Resolve) -> dict[str, int]:
    limits = {}
    for host, limit in config.ip_connection_limits.items():
        try:
            limits[normalized(resolve(host))] = limit
        except OSError as error:
            raise ConfigError.invalid(
                _KEY,
                config.max_connections_per_ip_overrides,
                f"cannot resolve the host {host}: {error.strerror or error}",
            ) from None
    return limits
