"""How fast connections are made: by all, on one listener, from one address (KIP-612, S-QTA-5).

`max.connection.creation.rate` and `listener.name.<listener>.max.connection.creation.rate` slow the
accepting down: the connection that goes beyond it, and those behind it, wait. The quota of an
address (`connection_creation_rate`) hits its clients alone: their connection is not served, and is
closed when the throttle time is over, so that they do not come again at once; it counts for nobody.
No throttle time is longer than a window.

Kafka takes host names for addresses, too, and looks them up; here an address is one.
Source: `ConnectionQuotas`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.quotas.creation_rates import NO_LIMIT, UNLIMITED, CreationRates
from broker.quotas.entity import Special
from broker.quotas.limits import Payer
from broker.quotas.rate import Rate, Windows
from broker.quotas.throttling import ThrottleTimes
from broker.quotas.usages import Usages
from broker.world.addresses import normalized
from storage.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRateStatistics:
    """Numbers for metrics: connections per second, milliseconds."""

    total: float
    by_listener: Mapping[str, float]
    by_ip: Mapping[str, float]
    """The rates of addresses that have a quota."""
    listener_throttle_ms: Mapping[str, float]
    """The average throttle time by listener, for its rate or the broker's; NaN without one."""
    ip_throttle_ms: Mapping[str, float]
    """The average throttle time by listener, for the rates of addresses."""
    ip_throttled: int
    """Connections that were closed for the rate of their address."""


class _Listener:
    __slots__ = ("ip_throttle", "rate", "throttle")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.throttle = ThrottleTimes()
        self.ip_throttle = ThrottleTimes()


class ConnectionRates:
    """The rates of new connections. Event loop only."""

    def __init__(self, clock: Clock, windows: Windows) -> None:
        self._clock = clock
        self._windows = windows
        self._limits = UNLIMITED
        self._total = Rate(windows)
        self._listeners: dict[str, _Listener] = {}
        self._by_ip: dict[str, int] = {}
        self._any_ip: int | None = None
        self._of_ips: Usages[Rate] = Usages(lambda: Rate(windows))
        self._ip_throttled = 0

    def _ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    @property
    def limits_addresses(self) -> bool:
        """Whether any address has a quota."""
        return self._any_ip is not None or bool(self._by_ip)

    def reconfigure(self, limits: CreationRates) -> None:
        """Hold new connections to other limits."""
        self._limits = limits

    def change(self, ip: str | Special, rate: float | None) -> None:
        """Set the quota of an address, or of all that have none (DEFAULT); None removes it."""
        bound = None if rate is None else int(rate)
        if isinstance(ip, Special):
            self._any_ip = bound
        elif bound is None:
            self._by_ip.pop(normalized(ip), None)
        else:
            self._by_ip[normalized(ip)] = bound

    # ---- a connection comes

    def wait_ms(self, listener: str) -> int:
        """Record a new connection on a listener; return for how long it must wait."""
        now_ms = self._ms()
        found, limits = self._listener(listener), self._limits
        found.rate.record(1, now_ms)
        limit = limits.by_listener.get(listener, NO_LIMIT)
        throttle_ms = self._over(found.rate, limit, now_ms)
        if listener != limits.protected:
            self._total.record(1, now_ms)
            throttle_ms = max(throttle_ms, self._over(self._total, limits.total, now_ms))
        if throttle_ms:
            found.throttle.note(throttle_ms, now_ms)
        return throttle_ms

    def refuse_ms(self, listener: str, ip: str) -> int:
        """Return after how long to close a new connection whose address has too many.

        Returns 0 if the connection is to be served.
        """
        if not self.limits_addresses:
            return 0
        ip = normalized(ip)
        bound = self._by_ip.get(ip, self._any_ip)
        if bound is None:
            return 0
        now_ms = self._ms()
        rate = self._of_ips.of(Payer("", ip), now_ms)
        rate.record(1, now_ms)
        throttle_ms = self._over(rate, bound, now_ms)
        if throttle_ms:
            found = self._listener(listener)
            rate.record(-1, now_ms)
            found.rate.record(-1, now_ms)
            if listener != self._limits.protected:
                self._total.record(-1, now_ms)
            found.ip_throttle.note(throttle_ms, now_ms)
            self._ip_throttled += 1
        return throttle_ms

    def _over(self, rate: Rate, bound: int, now_ms: int) -> int:
        if bound == NO_LIMIT:
            return 0
        return min(rate.measured(now_ms).over(bound), self._windows.window_ms)

    def _listener(self, name: str) -> _Listener:
        found = self._listeners.get(name)
        if found is None:
            found = self._listeners[name] = _Listener(self._windows)
        return found

    def statistics(self) -> ConnectionRateStatistics:
        """A snapshot."""
        now_ms = self._ms()
        listeners = self._listeners.items()
        return ConnectionRateStatistics(
            total=self._total.measured(now_ms).per_second,
            by_listener={name: one.rate.measured(now_ms).per_second for name, one in listeners},
            by_ip={
                payer.client_id: rate.measured(now_ms).per_second
                for payer, rate in self._of_ips.remembered(now_ms)
            },
            listener_throttle_ms={name: one.throttle.average(now_ms) for name, one in listeners},
            ip_throttle_ms={name: one.ip_throttle.average(now_ms) for name, one in listeners},
            ip_throttled=self._ip_throttled,
        )
