"""Limits on the number of connections: of the broker, of each listener, of each address.

`max.connections`, `listener.name.<listener>.max.connections`, `max.connections.per.ip`, and the
share of the process's descriptors that connections may use. A connection over a limit is accepted
and closed at once, so its client gets a disconnect and does not hang (Kafka does so for addresses;
over its other limits clients wait unaccepted). Every refusal has its reason (decision 6).

The limit of the broker is not for the listener between brokers, if there are others: brokers that
clients could shut out would leave the ISR (KIP-402). Its connections count for the others.

Source: `ConnectionQuotas.connectionSlotAvailable`.
"""

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.world.addresses import normalized


class ConnectionRefusal(enum.Enum):
    """Why a connection was closed right after it was accepted."""

    DESCRIPTORS = "open files"
    """The process's remaining descriptors are reserved for files (`broker.world.descriptors`)."""
    BROKER_LIMIT = "max.connections"
    LISTENER_LIMIT = "listener.name.*.max.connections"
    IP_LIMIT = "max.connections.per.ip"
    IP_RATE = "connection_creation_rate"
    """The quota of an address (`broker.quotas.connection_rates`): closed after a while."""


NO_LIMIT = 2147483647


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Maximum numbers of simultaneous connections."""

    total: int = NO_LIMIT
    protected: str | None = None
    """The listener between brokers, if there are others: `total` is not for it."""
    by_listener: Mapping[str, int] = field(default_factory=dict)
    """Listener name to its limit; other listeners have none."""
    per_ip: int = NO_LIMIT
    ip_overrides: Mapping[str, int] = field(default_factory=dict)
    """Address to its limit, which replaces `per_ip`; addresses are `normalized`."""

    def of_address(self, host: str) -> int:
        """The limit of one address."""
        if not self.ip_overrides:
            return self.per_ip
        return self.ip_overrides.get(normalized(host), self.per_ip)


UNLIMITED = Limits()


class ConnectionLimits:
    """Counts connections. Event loop only."""

    def __init__(self, limits: Limits, *, descriptors: int = NO_LIMIT) -> None:
        """`descriptors` is the number of connections that the process has descriptors for."""
        self._limits = limits
        self._descriptors = descriptors
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._count = 0

    def reconfigure(self, limits: Limits) -> None:
        """Hold new connections to other limits; open ones stay."""
        self._limits = limits

    @property
    def count(self) -> int:
        """The number of open connections."""
        return self._count

    def admit(self, host: str, listener: str = "") -> ConnectionRefusal | None:
        """Count a new connection and return None, or return why it is refused."""
        limits = self._limits
        if self._count >= self._descriptors:
            return ConnectionRefusal.DESCRIPTORS
        if self._count >= limits.total and listener != limits.protected:
            return ConnectionRefusal.BROKER_LIMIT
        if self._by_listener[listener] >= limits.by_listener.get(listener, NO_LIMIT):
            return ConnectionRefusal.LISTENER_LIMIT
        if self._by_host[host] >= limits.of_address(host):
            return ConnectionRefusal.IP_LIMIT
        self._count += 1
        self._by_listener[listener] += 1
        self._by_host[host] += 1
        return None

    def leave(self, host: str, listener: str = "") -> None:
        """Count an admitted connection as ended."""
        self._count -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
