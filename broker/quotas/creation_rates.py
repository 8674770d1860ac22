"""The configured limits of new connections: `max.connection.creation.rate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NO_LIMIT: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationRates:
    """The configured limits of new connections, per second."""

    total: int = NO_LIMIT
    by_listener: Mapping[str, int] = field(default_factory=dict)
    """Other listeners have none."""
    protected: str | None = None
    """The listener between brokers, if there are others: `total` is not for it."""

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return any(limit != NO_LIMIT for limit in (self.total, *self.by_listener.values()))


UNLIMITED: Final = CreationRates()
