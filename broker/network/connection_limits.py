"""How many connections there may be: `max.connections` and `max.connections.per.ip`.

As Kafka's ConnectionQuotas: a connection over a limit is accepted and closed at once, so its client
sees an end and not a hang. Every decision has its reason (decision 6).
"""

import enum
from collections.abc import Mapping


class Refusal(enum.Enum):
    """Why a connection was closed right after it was accepted."""

    BROKER_LIMIT = "max.connections"
    IP_LIMIT = "max.connections.per.ip"


class ConnectionLimits:
    """Counts connections by address. Event loop only."""

    def __init__(self, *, total: int, per_ip: int, overrides: Mapping[str, int]) -> None:
        """`overrides`: limits of single addresses; a host name stands for its addresses."""
        self._total = total
        self._per_ip = per_ip
        self._overrides = overrides
        self._counts: dict[str, int] = {}
        self._count = 0

    def change(self, *, total: int, per_ip: int, overrides: Mapping[str, int]) -> None:
        """Other limits from now on; connections that are there stay."""
        self._total = total
        self._per_ip = per_ip
        self._overrides = overrides

    @property
    def count(self) -> int:
        """Connections now."""
        return self._count

    def admit(self, host: str) -> Refusal | None:
        """Count one more connection of this address, unless there is a reason not to."""
        if self._count >= self._total:
            return Refusal.BROKER_LIMIT
        mine = self._counts.get(host, 0)
        if mine >= self._overrides.get(host, self._per_ip):
            return Refusal.IP_LIMIT
        self._counts[host] = mine + 1
        self._count += 1
        return None

    def leave(self, host: str) -> None:
        """An admitted connection of this address has ended."""
        self._count -= 1
        if self._counts[host] == 1:
            del self._counts[host]
        else:
            self._counts[host] -= 1
