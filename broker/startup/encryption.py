"""The TLS of the listeners at a start: their stores are read before a port is opened."""

from typing import TYPE_CHECKING, Final

from broker.cluster.dynamic_broker_config import DynamicBrokerConfig
from broker.world.world import World
from storage.clock import Clock
from storage.waits import call

if TYPE_CHECKING:
    from broker.network.tls_listeners import TlsListeners

_MOST_THREADS: Final = 4
"""That compute handshakes: the event loop has no time for more."""


async def open_tls(configs: DynamicBrokerConfig, world: World) -> "TlsListeners | None":
    """Read the stores of the listeners, now and whenever they change; None if none speaks TLS.

    Raises ConfigError with a line that says what to do.
    """
    config = configs.current
    if not any(listener.is_encrypted for listener in config.listeners):
        return None
    threads = min(max(world.processors - 1, 1), _MOST_THREADS)
    longest_s = config.ssl_handshake_max_ms / 1000
    listeners = await call(_new_listeners, world.clock, threads, longest_s)
    await listeners.load(config)
    configs.check_stores(listeners)
    return listeners


def _new_listeners(clock: Clock, threads: int, longest_s: float) -> "TlsListeners":
    """Import what only a broker with TLS needs, which takes a tenth of a second, and make it."""
    from broker.network.handshakes import HandshakeBounds
    from broker.network.tls_listeners import TlsListeners

    return TlsListeners(clock, HandshakeBounds(threads=threads, longest_s=longest_s))
